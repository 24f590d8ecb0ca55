// Rates of attention over pages, by format of the KV cache, through the CPU backend on all threads.
//   attention_bench [--benchmark_filter=REGEX]      a table
//   attention_bench --json                          the same as one JSON array
// Layers rotate, as a model's do, until their pages exceed 256 MB or the model has no more. GFLOP/s counts two
// operations per product of scores and of values, masked ones not counted; GB/s the traffic that
// kernels/attention_traffic.h counts. Beside them: the share of the limits measured at the start of the same run
// (f32 multiply-adds from registers, which integer formats can exceed; bytes read from 192 MB) and the traffic
// over the least that any schedule moves with near memory as large as a block of the kernels'.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/random.h"
#include "bench/figures.h"
#include "kernels/attention_traffic.h"
#include "kernels/backend.h"
#include "kernels/kernel_table.h"
#include "probe/arithmetic_peak.h"
#include "probe/read_rate.h"

namespace assay {
namespace {

constexpr size_t kReadBytes = size_t{192} << 20;

struct Limits {
  double flops_per_second = 0;  // 0: not known here
  double bytes_per_second = 0;
};
Limits g_limits;  // written once, before the benches run

struct Shape {
  const char* model;
  int n_layers, n_heads, n_kv_heads, head_dim;
};
constexpr Shape kShapes[] = {
    {"SmolLM2-135M", 30, 9, 3, 64},
    {"Llama-3.2-1B", 16, 32, 8, 64},
    {"Llama-3-8B", 32, 32, 8, 128},
};
constexpr int kPageTokens = 16;
constexpr size_t kMostBytes = size_t{256} << 20;

// The pages of one sequence over some layers, all positions stored.
class Cache {
 public:
  Cache(const Shape& shape, Format format, int n_positions, Backend& backend) {
    const size_t plane = kv_plane_bytes(format, shape.n_kv_heads, kPageTokens, shape.head_dim);
    const int n_pages = (n_positions + kPageTokens - 1) / kPageTokens;
    const size_t layer = 2 * plane * static_cast<size_t>(n_pages);
    n_layers_ = static_cast<int>(std::min<size_t>(static_cast<size_t>(shape.n_layers), kMostBytes / layer + 1));
    layer_bytes_ = 2 * plane;
    blocks_.resize(static_cast<size_t>(n_pages));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    view_ = {.blocks = blocks_.data(),
             .block_bytes = layer_bytes_ * static_cast<size_t>(n_layers_),
             .value_offset = plane,
             .key_format = format,
             .value_format = format,
             .page_tokens = kPageTokens,
             .n_kv_heads = shape.n_kv_heads,
             .head_dim = shape.head_dim};
    memory_ = *AlignedBuffer::allocate(view_.block_bytes * blocks_.size());
    view_.base = memory_.data();
    const int64_t width = int64_t{shape.n_kv_heads} * shape.head_dim;
    Random random(3, "attention_bench");
    std::vector<float> rows(static_cast<size_t>(1024 * width));
    for (float& x : rows) x = static_cast<float>(random.normal());
    for (int i = 0; i < n_layers_; ++i) {
      for (int first = 0; first < n_positions; first += 1024) {
        backend.store_kv(layer_view(i), rows.data(), rows.data(), width, std::min(1024, n_positions - first),
                         first);
      }
    }
  }
  int n_layers() const { return n_layers_; }
  KvView layer_view(int layer) const {
    KvView view = view_;
    view.key_offset += static_cast<size_t>(layer) * layer_bytes_;
    view.value_offset += static_cast<size_t>(layer) * layer_bytes_;
    return view;
  }

 private:
  int n_layers_ = 0;
  size_t layer_bytes_ = 0;
  std::vector<int32_t> blocks_;
  AlignedBuffer memory_;
  KvView view_;
};

void run_attention(benchmark::State& state, const Shape& shape, Format format, int context, int n_queries,
                   int n_threads) {
  const auto backend = *make_cpu_backend("auto", n_threads);
  const Cache cache(shape, format, context, *backend);
  const int64_t width = int64_t{shape.n_heads} * shape.head_dim;
  Random random(5, "queries");
  std::vector<float> queries(static_cast<size_t>(n_queries * width)), output(queries.size());
  for (float& x : queries) x = static_cast<float>(random.normal());
  const AttentionShape attention{.n_heads = shape.n_heads,
                                 .n_kv_heads = shape.n_kv_heads,
                                 .head_dim = shape.head_dim,
                                 .scale = 0.125F};
  int layer = 0;
  for (auto _ : state) {
    const AttentionTask task{queries.data(),    width,     output.data(), width, n_queries,
                             context - n_queries, cache.layer_view(layer)};
    backend->attention(attention, {&task, 1});
    layer = layer + 1 < cache.n_layers() ? layer + 1 : 0;
    benchmark::ClobberMemory();
  }
  const AttentionWork work{attention, n_queries, context, format, format};
  const int block = attention_queries_per_block(attention);
  const AttentionTraffic traffic = attention_traffic(work, block);
  // A block's queries and sums, and one block of keys and values.
  const double near_values = 2.0 * kAttentionRowsPerBlock * shape.head_dim + 2.0 * kKeyBlock * shape.head_dim;
  const auto calls = static_cast<double>(state.iterations());
  const double flops = calls * 4 * visible_pairs(work) * shape.head_dim, bytes = calls * traffic.total();
  const auto rate = [&](const char* unit, double value) {
    state.counters[unit] = benchmark::Counter(value, benchmark::Counter::kIsRate);
  };
  rate("GFLOP/s", flops * 1e-9);
  rate("GB/s", bytes * 1e-9);
  if (g_limits.flops_per_second > 0) rate("share of f32 peak", flops / g_limits.flops_per_second);
  rate("share of read bandwidth", bytes / g_limits.bytes_per_second);
  state.counters["MB moved"] = traffic.total() * 1e-6;
  state.counters["traffic over bound"] = traffic.total() / attention_io_bound(work, near_values);
}

void register_all() {
  for (const Shape& shape : kShapes) {
    for (const Format format : {Format::kF32, Format::kF16, Format::kBF16, Format::kFp8E4M3, Format::kFp8E5M2,
                                Format::kInt8, Format::kInt4}) {
      const auto add = [&](const std::string& work, int context, int n_queries) {
        const std::string label =
            std::string(shape.model) + "/kv:" + std::string(name(format)) + "/" + work;
        benchmark::RegisterBenchmark(label.c_str(), [&shape, format, context, n_queries](
                                                        benchmark::State& state) {
          run_attention(state, shape, format, context, n_queries, 0);
        })->UseRealTime()->Unit(benchmark::kMicrosecond);
      };
      for (const int n : {512, 2048}) add("prefill:" + std::to_string(n), n, n);
      for (const int n : {2048, 8192, 32768}) add("decode:" + std::to_string(n), n, 1);
    }
  }
}

// Collects one row per counter.
class FigureReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      for (const auto& [unit, counter] : run.counters) {
        figures_.push_back({.figure = "attention " + run.benchmark_name(),
                            .value = counter.value,
                            .unit = unit,
                            .samples = static_cast<int>(run.iterations),
                            .how = "attention_bench --json, mean over calls"});
      }
    }
  }
  const std::vector<bench::Figure>& figures() const { return figures_; }

 private:
  std::vector<bench::Figure> figures_;
};

int run(bool json) {
  const auto backend = *make_cpu_backend("auto", 1);
  const std::string backend_name = backend->name();  // "cpu avx512, 1 thread"
  for (int i = 0; i < static_cast<int>(Isa::kCount); ++i) {
    const auto isa = static_cast<Isa>(i);
    if (backend_name.find(name(isa)) == std::string::npos) continue;
    g_limits.flops_per_second = measure_arithmetic_peak(isa, Arithmetic::kF32, 0).value_or(0);
  }
  g_limits.bytes_per_second = *measure_read_rate({.bytes = kReadBytes});
  register_all();
  if (!json) {
    fmt::print("limits: {:.0f} GFLOP/s in f32, {:.1f} GB/s read from 192 MB\n",
               g_limits.flops_per_second * 1e-9, g_limits.bytes_per_second * 1e-9);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }
  FigureReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  std::vector<bench::Figure> figures = {
      {.figure = "limit, f32 multiply-adds", .value = g_limits.flops_per_second * 1e-9, .unit = "GFLOP/s",
       .samples = 7, .how = "from registers, best of 7"},
      {.figure = "limit, reading 192 MB", .value = g_limits.bytes_per_second * 1e-9, .unit = "GB/s",
       .samples = 5, .how = "best of 5"}};
  figures.insert(figures.end(), reporter.figures().begin(), reporter.figures().end());
  return bench::print(figures, true);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const bool json = assay::bench::wants_json(argc, argv);
  const auto kept =
      std::remove_if(argv + 1, argv + argc, [](const char* word) { return std::strcmp(word, "--json") == 0; });
  argc = static_cast<int>(kept - argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  return assay::run(json);
}
