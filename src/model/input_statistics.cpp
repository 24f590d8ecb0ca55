#include "model/input_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/units.h"
#include "kernels/activations.h"
#include "kvcache/kv_pool.h"

namespace assay {
namespace {

// The widths of the inputs of a layer.
std::array<int64_t, kMatrixInputs> widths_of(const ModelConfig& config) {
  return {config.n_embedding, int64_t{config.n_heads} * config.head_dim, config.n_embedding,
          config.n_feed_forward};
}

// Sums over everything seen so far of one input.
struct Sums {
  std::vector<double> magnitudes, squares;
  AlignedBuffer gram;  // [n, n] f32
  int64_t n_rows = 0;
};

class Collector {
 public:
  Collector(Model& model, int first_layer, int n_layers, bool with_products)
      : model_(model), first_layer_(first_layer), with_products_(with_products) {
    sums_.resize(static_cast<size_t>(n_layers));
  }

  Result<void> allocate() {
    const auto widths = widths_of(model_.config());
    for (auto& layer : sums_) {
      for (size_t i = 0; i < kMatrixInputs; ++i) {
        const auto n = static_cast<size_t>(widths[i]);
        layer[i].magnitudes.resize(n);
        layer[i].squares.resize(n);
        if (with_products_) {
          ASSIGN_OR_RETURN(layer[i].gram, AlignedBuffer::allocate(n * n * sizeof(float)));
        }
      }
    }
    if (!with_products_) return {};
    const int64_t widest = *std::ranges::max_element(widths);
    ASSIGN_OR_RETURN(buffer_, ActivationBuffer::create(widest, model_.max_batch_tokens()));
    return {};
  }

  void observe(int layer, MatrixInput input, const ActivationView& x) {
    const int index = layer - first_layer_;
    if (error_ || index < 0 || index >= static_cast<int>(sums_.size())) return;
    CHECK(x.format == Format::kF32);
    Sums& sums = sums_[static_cast<size_t>(index)][static_cast<size_t>(input)];
    sums.n_rows += x.n_rows;
    for (int64_t r = 0; r < x.n_rows; ++r) {
      const float* row = static_cast<const float*>(x.values) + r * x.stride;
      for (int64_t c = 0; c < x.n_cols; ++c) {
        const double value = row[c];
        sums.magnitudes[static_cast<size_t>(c)] += std::abs(value);
        sums.squares[static_cast<size_t>(c)] += value * value;
      }
    }
    if (with_products_) add_products(x, sums);
  }

  // X^T X by the backend's own f32 product: X^T is both the weights and the activations.
  void add_products(const ActivationView& x, Sums& sums) {
    const auto n = static_cast<size_t>(x.n_cols), rows = static_cast<size_t>(x.n_rows);
    transposed_.resize(n * rows);
    for (size_t r = 0; r < rows; ++r) {
      const float* row = static_cast<const float*>(x.values) + static_cast<int64_t>(r) * x.stride;
      for (size_t c = 0; c < n; ++c) transposed_[c * rows + r] = row[c];
    }
    auto weights = pack_floats(transposed_, x.n_cols, x.n_rows, Format::kF32);
    if (!weights) {
      error_ = weights.error();
      return;
    }
    Backend& backend = model_.backend();
    const MatmulTask task{
        .weights = &*weights,
        .input = backend.prepare(Format::kF32, transposed_.data(), x.n_cols, x.n_rows, buffer_),
        .output = sums.gram.as<float>(),
        .output_stride = x.n_cols,
        .accumulate = true};
    backend.matmul({&task, 1});
  }

  Result<LayerStatistics> finish() {
    if (error_) return std::unexpected(*error_);
    LayerStatistics statistics{.first_layer = first_layer_, .layers = {}};
    statistics.layers.resize(sums_.size());
    for (size_t layer = 0; layer < sums_.size(); ++layer) {
      for (size_t i = 0; i < kMatrixInputs; ++i) {
        Sums& sums = sums_[layer][i];
        InputStatistics& out = statistics.layers[layer][i];
        out.n_rows = sums.n_rows;
        const double n = static_cast<double>(std::max<int64_t>(sums.n_rows, 1));
        for (const double sum : sums.magnitudes) out.mean_magnitude.push_back(static_cast<float>(sum / n));
        for (const double sum : sums.squares) out.mean_square.push_back(static_cast<float>(sum / n));
        if (sums.gram.empty()) continue;
        const float* gram = sums.gram.as<float>();
        out.gram.assign(gram, gram + sums.gram.size() / sizeof(float));
        sums.gram = AlignedBuffer();  // one copy at a time
      }
    }
    return statistics;
  }

 private:
  Model& model_;
  int first_layer_;
  bool with_products_;
  std::vector<std::array<Sums, kMatrixInputs>> sums_;
  std::vector<float> transposed_;
  ActivationBuffer buffer_;
  std::optional<Error> error_;
};

// Sets the observer for as long as it lives.
class Tap {
 public:
  Tap(Model& model, InputObserver observer) : model_(model) { model_.set_input_observer(std::move(observer)); }
  ~Tap() { model_.set_input_observer({}); }
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

 private:
  Model& model_;
};

}  // namespace

uint64_t gram_bytes_per_layer(const ModelConfig& config) {
  uint64_t bytes = 0;
  for (const int64_t width : widths_of(config)) bytes += static_cast<uint64_t>(width * width) * sizeof(float);
  return bytes;
}

Result<LayerStatistics> collect_input_statistics(Model& model,
                                                 std::span<const std::vector<int32_t>> sequences,
                                                 int first_layer, int n_layers, bool with_products,
                                                 const std::function<bool(double)>& progress) {
  if (model.precision().prefill_activations != Format::kF32) {
    return fail(ErrorCode::kInvalidArgument, "calibration", "expected a model with f32 activations");
  }
  Collector collector(model, first_layer, n_layers, with_products);
  RETURN_IF_ERROR(collector.allocate());
  size_t longest = 0, total = 0;
  for (const auto& sequence : sequences) {
    longest = std::max(longest, std::min(sequence.size(), static_cast<size_t>(model.max_context())));
    total += std::min(sequence.size(), static_cast<size_t>(model.max_context()));
  }
  if (total == 0) return fail(ErrorCode::kInvalidArgument, "calibration", "the text has no tokens");

  const KvLayout layout = model.kv_layout();
  const auto n_blocks = static_cast<int32_t>(ceil_div(static_cast<int64_t>(longest), layout.page_tokens));
  ASSIGN_OR_RETURN(KvPool pool, KvPool::create(layout, n_blocks));
  std::vector<int32_t> blocks(static_cast<size_t>(n_blocks));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::vector<float> hidden;
  const Tap tap(model, [&](int layer, MatrixInput input, const ActivationView& x) {
    collector.observe(layer, input, x);
  });
  size_t done = 0;
  for (const auto& sequence : sequences) {
    const size_t n = std::min(sequence.size(), static_cast<size_t>(model.max_context()));
    for (size_t first = 0; first < n;) {
      const size_t count = std::min(n - first, static_cast<size_t>(model.max_batch_tokens()));
      hidden.resize(count * static_cast<size_t>(model.config().n_embedding));
      const SequenceSlice slice{.tokens = std::span(sequence).subspan(first, count),
                                .first_position = static_cast<int32_t>(first),
                                .blocks = blocks,
                                .n_prompt = static_cast<int32_t>(count)};
      model.forward({&slice, 1}, pool, hidden);
      first += count;
      done += count;
      if (progress && !progress(static_cast<double>(done) / static_cast<double>(total))) {
        return fail(ErrorCode::kCancelled, "calibration", "stopped on request");
      }
    }
  }
  return collector.finish();
}

}  // namespace assay
