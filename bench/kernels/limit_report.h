// What the Google Benchmark programs of the kernels share: limits of the machine measured in the same run, the
// counters that compare with them, and the figures that --json prints. Header only.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench/figures.h"
#include "bench/limits.h"

namespace assay::bench {

// One call does `operations` and moves `bytes`, each 0 where it is no matter. The share is that of the time
// which the nearer limit allows.
inline void count(benchmark::State& state, double operations, double operations_per_second, double bytes,
                  double bytes_per_second) {
  const auto calls = static_cast<double>(state.iterations());
  using benchmark::Counter;
  if (operations > 0) state.counters["GFLOP/s"] = Counter(calls * operations * 1e-9, Counter::kIsRate);
  if (bytes > 0) state.counters["GB/s"] = Counter(calls * bytes * 1e-9, Counter::kIsRate);
  double least_seconds = 0;
  if (operations > 0 && operations_per_second > 0) least_seconds = operations / operations_per_second;
  if (bytes > 0 && bytes_per_second > 0) least_seconds = std::max(least_seconds, bytes / bytes_per_second);
  state.counters["% of limit"] = Counter(calls * least_seconds * 100, Counter::kIsRate);
}

class FigureReporter final : public benchmark::BenchmarkReporter {
 public:
  explicit FigureReporter(std::string how) : how_(std::move(how)) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      for (const auto& [unit, counter] : run.counters)
        figures.push_back({run.benchmark_name(), counter.value, unit, {}, Better::kHigher,
                           static_cast<int>(run.iterations), how_});
  }
  std::vector<Figure> figures;

 private:
  std::string how_;
};

// `register_all` registers the benchmarks. --json prints the figures, other options are Google Benchmark's.
template <class Register>
int run_benchmarks(int argc, char** argv, const char* how, Register&& register_all) {
  const bool json = wants_json(argc, argv);
  argc = static_cast<int>(
      std::remove_if(argv + 1, argv + argc, [](const char* word) { return std::strcmp(word, "--json") == 0; }) - argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  register_all();
  if (!json) {
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }
  FigureReporter reporter(how);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return print(reporter.figures, true);
}

}  // namespace assay::bench
