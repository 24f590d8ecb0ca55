// Products with half of the blocks dropped against the dense int4 kernel, same shapes, alternating.
//   sparse_bench [--threads 2] [--json]
// Weights rotate through copies that together exceed the second-level cache, as a model's layers do. `block50`
// keeps the same number of blocks in every tile, `global50` a quarter to three quarters of them.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/figures.h"
#include "kernels/backend.h"
#include "kernels/sparse_matrix.h"

namespace {

using namespace assay;

struct Shape {
  int64_t n_inputs, n_outputs;
};
constexpr Shape kShapes[] = {{576, 1536}, {1536, 576}, {2048, 2048}, {2048, 8192}, {8192, 2048}};
constexpr size_t kRotatedBytes = size_t{24} << 20;
constexpr int kSamples = 7;
constexpr int kGroup = 64;

enum class Kind { kDense, kBlock50, kGlobal50 };

PackedMatrix make_weights(Kind kind, const Shape& shape, uint64_t seed) {
  Random random(seed, "sparse_bench");
  std::vector<float> values(static_cast<size_t>(shape.n_inputs * shape.n_outputs));
  for (int64_t r = 0; r < shape.n_outputs; ++r) {
    const double size = 1 + 0.5 * static_cast<double>(r / 16 % 5);  // some tiles matter more than others
    for (int64_t c = 0; c < shape.n_inputs; ++c) {
      values[static_cast<size_t>(r * shape.n_inputs + c)] = static_cast<float>(size * random.uniform(-1, 1));
    }
  }
  if (kind == Kind::kDense) {
    return *pack_integers(*quantise_groups(values, shape.n_outputs, shape.n_inputs, Format::kInt4, kGroup,
                                           GroupScheme::kAsymmetric));
  }
  const BlockMask mask = kind == Kind::kBlock50
                             ? *prune_blockwise(values, shape.n_outputs, shape.n_inputs, {})
                             : *prune_global(values, shape.n_outputs, shape.n_inputs, {});
  return *pack_sparse(*quantise_sparse(values, mask, kGroup, false, {}));
}

// Calls of one kind, over copies of one matrix.
class Case {
 public:
  Case(Kind kind, const Shape& shape, int64_t rows, Backend& backend)
      : backend_(backend), n_outputs_(shape.n_outputs), y_(static_cast<size_t>(rows * shape.n_outputs)) {
    do {
      copies_.push_back(make_weights(kind, shape, copies_.size() % 2));
    } while (copies_.size() * copies_[0].bytes() < kRotatedBytes && copies_.size() < 32);
    Random random(7, "activations");
    std::vector<float> x(static_cast<size_t>(rows * shape.n_inputs));
    for (float& v : x) v = static_cast<float>(random.normal());
    buffer_ = *ActivationBuffer::create(rows, shape.n_inputs);
    view_ = backend.prepare(Format::kInt8, x.data(), rows, shape.n_inputs, buffer_);
  }

  void call() {
    const MatmulTask task{&copies_[next_], view_, y_.data(), n_outputs_, false, nullptr};
    backend_.matmul({&task, 1});
    next_ = next_ + 1 < copies_.size() ? next_ + 1 : 0;
  }

 private:
  Backend& backend_;
  int64_t n_outputs_;
  std::vector<PackedMatrix> copies_;
  std::vector<float> y_;
  ActivationBuffer buffer_;
  ActivationView view_;
  size_t next_ = 0;
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void measure(const Shape& shape, int64_t rows, Backend& backend, std::vector<bench::Figure>& figures) {
  Case dense(Kind::kDense, shape, rows, backend), block(Kind::kBlock50, shape, rows, backend),
      global(Kind::kGlobal50, shape, rows, backend);
  std::vector<double> seconds, block_ratios, global_ratios;
  for (int i = 0; i < kSamples; ++i) {
    const double of_dense = bench::median_seconds(1, [&] { dense.call(); });
    seconds.push_back(of_dense);
    block_ratios.push_back(of_dense / bench::median_seconds(1, [&] { block.call(); }));
    global_ratios.push_back(of_dense / bench::median_seconds(1, [&] { global.call(); }));
  }
  const std::string label = std::to_string(shape.n_inputs) + "x" + std::to_string(shape.n_outputs) + ", " +
                            std::to_string(rows) + (rows == 1 ? " row" : " rows");
  const auto add = [&](std::string figure, double value, std::string unit, std::string how) {
    figures.push_back({.figure = std::move(figure),
                       .value = value,
                       .unit = std::move(unit),
                       .samples = kSamples,
                       .how = std::move(how)});
  };
  add("dense int4:64 " + label, median(seconds) * 1e6, "us", "sparse_bench, median of alternating batches");
  add("block50 " + label, median(block_ratios), "x dense", "sparse_bench, median of pairwise ratios");
  add("global50 " + label, median(global_ratios), "x dense", "sparse_bench, median of pairwise ratios");
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 2;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--threads") == 0) threads = std::atoi(argv[i + 1]);
  }
  const auto backend = make_cpu_backend("auto", threads);
  if (!backend) return 1;
  std::vector<bench::Figure> figures;
  for (const Shape& shape : kShapes) {
    for (const int64_t rows : {1, 16, 256}) measure(shape, rows, **backend, figures);
  }
  return bench::print(figures, bench::wants_json(argc, argv));
}
