// Rates of the operations on rows (normalise, quantise, gate, rotate, store keys and values) through the CPU
// backend. GB/s counts what each reads and writes once; the share is of the rate at which the machine reads a
// working set of that size.
//   rows_bench [--benchmark_filter=REGEX] [--json]
#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/random.h"
#include "kernels/kv_view.h"
#include "limit_report.h"

namespace assay {
namespace {

struct Shape {
  const char* model;
  int64_t width, inner;
  int n_heads, n_kv_heads, head_dim;
};
constexpr Shape kShapes[] = {{"SmolLM2-135M", 576, 1536, 9, 3, 64}, {"Llama-3.2-1B", 2048, 8192, 32, 8, 64}};

std::vector<float> random_values(int64_t n) {
  Random random(3, "rows_bench");
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = static_cast<float>(random.uniform(-1, 1));
  return values;
}

struct Operation {
  const char* name;
  int64_t cols;         // of a row
  double row_bytes;     // read and written
  std::function<void(Backend&, int64_t rows, Format format)> run;
};

void run(benchmark::State& state, const Operation& operation, int64_t rows, Format format, int n_threads) {
  const auto backend = *make_cpu_backend("auto", n_threads);
  for (auto _ : state) {
    operation.run(*backend, rows, format);
    benchmark::ClobberMemory();
  }
  static bench::Limits limits;
  const double bytes = operation.row_bytes * static_cast<double>(rows);
  bench::count(state, 0, 0, bytes, limits.read_rate(backend->n_threads(), static_cast<size_t>(bytes)));
}

// Buffers live as long as the program; the operations keep pointers to them.
struct Buffers {
  explicit Buffers(const Shape& s)
      : x(random_values(512 * 2 * s.inner)),
        weight(random_values(s.inner)),
        cosines(static_cast<size_t>(512 * s.head_dim / 2), 0.8F),  // lengths stay as they are
        sines(cosines.size(), 0.6F),
        codes(*ActivationBuffer::create(512, s.inner)) {
    const size_t plane = kv_plane_bytes(Format::kF32, s.n_kv_heads, 16, s.head_dim);
    pages = *AlignedBuffer::allocate(32 * 2 * plane);
    for (int i = 0; i < 32; ++i) blocks.push_back(i);
    kv = {.base = pages.data(), .blocks = blocks.data(), .block_bytes = 2 * plane, .value_offset = plane,
          .n_kv_heads = s.n_kv_heads, .head_dim = s.head_dim};
  }
  std::vector<float> x, weight, cosines, sines;
  ActivationBuffer codes;
  AlignedBuffer pages;
  std::vector<int32_t> blocks;
  KvView kv;
};

std::vector<Operation> operations_of(const Shape& s) {
  auto* b = new Buffers(s);
  const auto f = [](int64_t n) { return static_cast<double>(4 * n); };
  const int64_t heads = int64_t{s.n_heads} * s.head_dim, kv_width = int64_t{s.n_kv_heads} * s.head_dim;
  return {
      {"rms_norm_prepare", s.width, f(2 * s.width),
       [b, s](Backend& backend, int64_t rows, Format format) {
         backend.rms_norm_prepare(format, b->x.data(), b->weight.data(), rows, s.width, 1e-5F, b->codes);
       }},
      {"prepare", s.width, f(2 * s.width),
       [b, s](Backend& backend, int64_t rows, Format format) {
         backend.prepare(format, b->x.data(), rows, s.width, b->codes);
       }},
      {"gate_prepare", s.inner, f(3 * s.inner),
       [b, s](Backend& backend, int64_t rows, Format format) {
         backend.gate_prepare(format, GateFunction::kSilu, b->x.data(), b->x.data() + s.inner, 2 * s.inner, rows,
                              s.inner, b->codes);
       }},
      {"rope", heads, f(2 * heads),
       [b, s, heads](Backend& backend, int64_t rows, Format) {
         backend.rope(b->x.data(), rows, heads, s.n_heads, s.head_dim, s.head_dim / 2, b->cosines.data(),
                      b->sines.data(), RopeStyle::kHalves);
       }},
      {"store_kv", kv_width, f(4 * kv_width),
       [b, kv_width](Backend& backend, int64_t rows, Format format) {
         KvView kv = b->kv;
         kv.key_format = kv.value_format = format;
         backend.store_kv(kv, b->x.data(), b->x.data() + kv_width, 2 * kv_width, static_cast<int>(rows), 0);
       }},
  };
}

void register_all() {
  for (const Shape& shape : kShapes) {
    for (const Operation& operation : operations_of(shape)) {
      for (const Format format : {Format::kF32, Format::kBF16, Format::kInt8}) {
        if (std::string_view(operation.name) == "rope" && format != Format::kF32) continue;
        for (const int64_t rows : {1, 16, 512}) {
          for (const int threads : {1, 0}) {
            const std::string label = fmt::format("{}/{}/{}/rows:{}/threads:{}", operation.name, name(format),
                                                  shape.model, rows, threads == 1 ? "1" : "all");
            benchmark::RegisterBenchmark(label.c_str(), [operation, rows, format, threads](benchmark::State& state) {
              run(state, operation, rows, format, threads);
            })
                ->UseRealTime()
                ->MinTime(0.05);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  return assay::bench::run_benchmarks(argc, argv, "mean over calls; share of probe's read rate in the same run",
                                      [] { assay::register_all(); });
}
