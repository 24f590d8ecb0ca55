// Rates of the matmul kernels by format, shape and rows, through the CPU backend, and their share of what the
// machine allows: the longer of the time for the operations at the peak of register-only loops and the time
// for reading the weights once from a working set of that size, both measured by probe in the same run.
//   matmul_bench [--benchmark_filter=REGEX]      a table
//   matmul_bench --json                          the same as one JSON array
// Weights rotate through copies that together exceed the second-level cache, as a model's layers do.
// GB/s counts the bytes of weights read once per call; GFLOP/s two operations per product (integer ones too).
#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/backend.h"
#include "limit_report.h"

namespace assay {
namespace {

struct Shape {
  const char* model;
  int64_t n_inputs, n_outputs;
};
constexpr Shape kShapes[] = {
    {"SmolLM2-135M", 576, 576},   {"SmolLM2-135M", 576, 1536},  {"SmolLM2-135M", 1536, 576},
    {"SmolLM2-135M", 576, 49152}, {"Llama-3.2-1B", 2048, 2048}, {"Llama-3.2-1B", 2048, 8192},
    {"Llama-3.2-1B", 8192, 2048},
};
constexpr size_t kRotatedBytes = size_t{48} << 20;

PackedMatrix make_weights(Format format, const Shape& shape, uint64_t seed) {
  Random random(seed, "matmul_bench");
  const auto n = static_cast<size_t>(shape.n_inputs * shape.n_outputs);
  if (!is_integer(format)) {
    std::vector<float> values(n);
    for (float& v : values) v = static_cast<float>(random.uniform(-1, 1));
    return *pack_floats(values, shape.n_outputs, shape.n_inputs, format);
  }
  IntegerGroups groups;
  groups.format = format;
  groups.rows = shape.n_outputs;
  groups.cols = shape.n_inputs;
  groups.zero_point = format == Format::kInt8 ? 128 : -1;  // as q8_0 and q4_1 have them
  groups.codes.resize(n);
  for (uint8_t& code : groups.codes)
    code = static_cast<uint8_t>(random.next() >> (format == Format::kInt8 ? 56 : 60));
  groups.scales.assign(n / 32, 0x1p-6F);
  groups.minimums.assign(n / 32, -0x1p-3F);
  return *pack_integers(groups);
}

// Copies of one matrix, made once per format and shape.
const std::vector<PackedMatrix>& weights_of(Format format, const Shape& shape) {
  static std::map<std::pair<int, const Shape*>, std::vector<PackedMatrix>> cache;
  auto [it, inserted] = cache.try_emplace({static_cast<int>(format), &shape});
  std::vector<PackedMatrix>& copies = it->second;
  if (!inserted) return copies;
  for (size_t bytes = 0; bytes < kRotatedBytes && copies.size() < 64; bytes += copies.back().bytes()) {
    copies.push_back(make_weights(format, shape, copies.size() % 4));
  }
  return copies;
}

void run_matmul(benchmark::State& state, Format weights, Format activations, const Shape& shape, int64_t rows,
                int n_threads) {
  const auto backend = *make_cpu_backend("auto", n_threads);
  const std::vector<PackedMatrix>& copies = weights_of(weights, shape);
  Random random(7, "activations");
  std::vector<float> x(static_cast<size_t>(rows * shape.n_inputs));
  for (float& v : x) v = static_cast<float>(random.normal());
  std::vector<float> y(static_cast<size_t>(rows * shape.n_outputs));
  ActivationBuffer buffer = *ActivationBuffer::create(rows, shape.n_inputs);
  const ActivationView view = backend->prepare(activations, x.data(), rows, shape.n_inputs, buffer);
  size_t next = 0;
  for (auto _ : state) {
    const MatmulTask task{&copies[next], view, y.data(), shape.n_outputs, false, nullptr};
    backend->matmul({&task, 1});
    next = next + 1 < copies.size() ? next + 1 : 0;
    benchmark::ClobberMemory();
  }
  static bench::Limits limits;
  const double operations =
      2.0 * static_cast<double>(rows) * static_cast<double>(shape.n_inputs * shape.n_outputs);
  bench::count(state, operations, limits.peak(*backend, activations), static_cast<double>(copies[0].bytes()),
               limits.read_rate(backend->n_threads(), kRotatedBytes));
}

void register_all() {
  struct Pair {
    Format weights, activations;
  };
  constexpr Pair kPairs[] = {
      {Format::kInt4, Format::kInt8}, {Format::kInt8, Format::kInt8},    {Format::kBF16, Format::kBF16},
      {Format::kF32, Format::kF32},   {Format::kF16, Format::kF32},      {Format::kFp8E4M3, Format::kF32},
      {Format::kInt4, Format::kF32},  {Format::kFp8E5M2, Format::kBF16},
  };
  for (const Pair& pair : kPairs) {
    for (const Shape& shape : kShapes) {
      for (const int64_t rows : {1, 4, 16, 64, 512}) {
        if (rows == 512 && shape.n_outputs > 10000) continue;  // logits are computed for few rows
        for (const int threads : {1, 0}) {
          const std::string label =
              std::string(name(pair.weights)) + "x" + std::string(name(pair.activations)) + "/" +
              std::to_string(shape.n_inputs) + "x" + std::to_string(shape.n_outputs) +
              "/rows:" + std::to_string(rows) + (threads == 1 ? "/threads:1" : "/threads:all");
          const auto body = [pair, &shape, rows, threads](benchmark::State& state) {
            run_matmul(state, pair.weights, pair.activations, shape, rows, threads);
          };
          auto* bench = benchmark::RegisterBenchmark(label.c_str(), body);
          bench->UseRealTime()->MinTime(0.05);
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  return assay::bench::run_benchmarks(argc, argv, "mean over calls; share of probe's limit in the same run",
                                      [] { assay::register_all(); });
}
