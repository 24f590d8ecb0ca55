#include "model/layer_calibration.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "model/matrix_loader.h"
#include "model/matrix_quantiser.h"
#include "numeric/awq.h"

namespace assay {
namespace {

struct LayerMatrix {
  const char* name;
  Role role;
  MatrixInput input;
};
constexpr LayerMatrix kLayerMatrices[] = {
    {"attn_q", Role::kAttentionQuery, MatrixInput::kAttention},
    {"attn_k", Role::kAttentionKey, MatrixInput::kAttention},
    {"attn_v", Role::kAttentionValue, MatrixInput::kAttention},
    {"attn_output", Role::kAttentionOutput, MatrixInput::kAttentionOutput},
    {"ffn_gate", Role::kGate, MatrixInput::kFeedForward},
    {"ffn_up", Role::kUp, MatrixInput::kFeedForward},
    {"ffn_down", Role::kDown, MatrixInput::kDown},
};

// A matrix in f32, as scales are folded into it.
struct Weights {
  std::string name;
  WeightFormat format;
  MatrixInput input;
  int64_t rows = 0, cols = 0;
  std::vector<float> values;
};

class LayerCalibration {
 public:
  LayerCalibration(const Checkpoint& checkpoint, const ModelConfig& config, int layer,
                   const std::array<InputStatistics, kMatrixInputs>& statistics)
      : checkpoint_(checkpoint), config_(config), statistics_(statistics), block_(fmt::format("blk.{}.", layer)) {
    for (size_t i = 0; i < kMatrixInputs; ++i) moments_[i] = statistics[i].mean_square;
  }

  Result<CalibratedWeights> run(const Precision& precision, int layer) {
    for (const LayerMatrix& m : kLayerMatrices) {
      const WeightFormat format = precision.weights_for(layer, m.role);
      if (format.needs_calibration()) RETURN_IF_ERROR(read_matrix(m, format));
    }
    // A producer's rows are divided before it is scaled as a reader itself.
    RETURN_IF_ERROR(scale_input(MatrixInput::kAttentionOutput));
    RETURN_IF_ERROR(scale_input(MatrixInput::kDown));
    RETURN_IF_ERROR(scale_input(MatrixInput::kAttention));
    RETURN_IF_ERROR(scale_input(MatrixInput::kFeedForward));
    for (size_t i = 0; i < kMatrixInputs; ++i) {
      RETURN_IF_ERROR(quantise_readers(static_cast<MatrixInput>(i)));
    }
    return std::move(done_);
  }

 private:
  Result<void> read_matrix(const LayerMatrix& m, const WeightFormat& format) {
    Weights w{.name = block_ + m.name + ".weight", .format = format, .input = m.input, .values = {}};
    const Tensor* tensor = checkpoint_.find(w.name);
    const auto n_inputs = static_cast<int64_t>(statistics_[static_cast<size_t>(m.input)].mean_square.size());
    if (tensor == nullptr || tensor->shape.size() != 2 || tensor->shape[1] != n_inputs) {
      return fail(ErrorCode::kCorrupt, w.name, "expected a matrix that reads {} values", n_inputs);
    }
    w.rows = tensor->shape[0];
    w.cols = tensor->shape[1];
    ASSIGN_OR_RETURN(w.values, decode_matrix(*tensor));
    matrices_.push_back(std::move(w));
    return {};
  }

  Weights* find(const std::string& name) {
    const auto it = std::ranges::find(matrices_, block_ + name + ".weight", &Weights::name);
    return it == matrices_.end() ? nullptr : &*it;
  }

  // The matrices that read `input`, when every one of the layer's is AWQ; else none.
  std::vector<Weights*> awq_readers(MatrixInput input) {
    std::vector<Weights*> readers;
    for (const LayerMatrix& m : kLayerMatrices) {
      if (m.input != input) continue;
      Weights* w = find(m.name);
      if (w == nullptr || w->format.correction != Correction::kAwq) return {};
      readers.push_back(w);
    }
    return readers;
  }

  Result<void> scale_input(MatrixInput input) {
    const std::vector<Weights*> readers = awq_readers(input);
    if (readers.empty()) return {};
    const char* producer_name = input == MatrixInput::kAttentionOutput ? "attn_v"
                                : input == MatrixInput::kDown         ? "ffn_up"
                                                                      : nullptr;
    Weights* producer = producer_name == nullptr ? nullptr : find(producer_name);
    if (producer_name != nullptr && (producer == nullptr || producer->format.correction != Correction::kAwq)) {
      return {};
    }
    const InputStatistics& statistics = statistics_[static_cast<size_t>(input)];
    std::vector<float> magnitude = statistics.mean_magnitude;
    if (input == MatrixInput::kAttentionOutput) share_between_heads(magnitude);
    std::vector<AwqMatrix> matrices;
    for (const Weights* reader : readers) matrices.push_back({reader->values, reader->rows});
    ASSIGN_OR_RETURN(const ChannelScales found,
                     search_channel_scales(matrices, magnitude, statistics.mean_square,
                                           readers[0]->format.format, readers[0]->format.group));
    for (Weights* reader : readers) scale_columns(reader->values, found.scales);
    std::vector<float>& moments = moments_[static_cast<size_t>(input)];
    for (size_t i = 0; i < moments.size(); ++i) moments[i] /= found.scales[i] * found.scales[i];
    if (producer == nullptr) {
      return divide_vector(input == MatrixInput::kAttention ? "attn_norm.weight" : "ffn_norm.weight",
                           found.scales);
    }
    const std::vector<float> by_row = input == MatrixInput::kAttentionOutput ? first_of_each_share(found.scales)
                                                                             : found.scales;
    divide_rows(producer->values, by_row);
    const std::string bias = std::string(producer_name) + ".bias";
    return checkpoint_.find(block_ + bias) == nullptr ? Result<void>{} : divide_vector(bias, by_row);
  }

  // Input i of the attention output is value i % head_dim of head i / head_dim, which n_heads / n_kv_heads query
  // heads in a row read from one value head.
  int64_t value_row(int64_t i) const {
    const int64_t sharers = config_.n_heads / config_.n_kv_heads;
    return i / config_.head_dim / sharers * config_.head_dim + i % config_.head_dim;
  }

  void share_between_heads(std::vector<float>& magnitude) const {
    std::vector<double> sums(static_cast<size_t>(config_.n_kv_heads * config_.head_dim));
    for (size_t i = 0; i < magnitude.size(); ++i) {
      sums[static_cast<size_t>(value_row(static_cast<int64_t>(i)))] += static_cast<double>(magnitude[i]);
    }
    const double sharers = config_.n_heads / config_.n_kv_heads;
    for (size_t i = 0; i < magnitude.size(); ++i) {
      magnitude[i] = static_cast<float>(sums[static_cast<size_t>(value_row(static_cast<int64_t>(i)))] / sharers);
    }
  }

  std::vector<float> first_of_each_share(const std::vector<float>& scales) const {
    std::vector<float> by_row(static_cast<size_t>(config_.n_kv_heads * config_.head_dim));
    for (size_t i = 0; i < scales.size(); ++i) by_row[static_cast<size_t>(value_row(static_cast<int64_t>(i)))] = scales[i];
    return by_row;
  }

  Result<void> divide_vector(const std::string& name, std::span<const float> scales) {
    const Tensor* tensor = checkpoint_.find(block_ + name);
    if (tensor == nullptr) return fail(ErrorCode::kCorrupt, block_ + name, "the tensor is missing");
    ASSIGN_OR_RETURN(std::vector<float> values, load_vector(*tensor, static_cast<int64_t>(scales.size())));
    divide_rows(values, scales);
    done_.vectors[block_ + name] = std::move(values);
    return {};
  }

  Result<void> quantise_readers(MatrixInput input) {
    const auto index = static_cast<size_t>(input);
    std::optional<HessianFactor> factor;
    std::optional<std::pair<ColumnOrder, int>> factor_of;
    for (Weights& w : matrices_) {
      if (w.input != input) continue;
      if (w.format.correction == Correction::kGptq) {
        const std::pair wanted{w.format.sparsity == Sparsity::kNone ? ColumnOrder::kByGroup : ColumnOrder::kNatural,
                               w.format.group};
        if (factor_of != wanted) {
          auto made = factor_hessian(statistics_[index].gram, w.cols, wanted.first, wanted.second);
          if (!made) return std::unexpected(made.error().within(w.name));
          factor = std::move(*made);
          factor_of = wanted;
        }
      }
      auto packed = quantise_matrix(w.values, w.rows, w.cols, w.format,
                                    {.mean_square = moments_[index], .factor = factor ? &*factor : nullptr});
      if (!packed) return std::unexpected(packed.error().within(w.name));
      done_.matrices.emplace(w.name, std::move(*packed));
      w.values = {};
    }
    return {};
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const std::array<InputStatistics, kMatrixInputs>& statistics_;
  std::string block_;
  std::array<std::vector<float>, kMatrixInputs> moments_;  // E[x^2] of the inputs as scaled
  std::vector<Weights> matrices_;
  CalibratedWeights done_;
};

}  // namespace

Result<CalibratedWeights> calibrate_layer(const Checkpoint& checkpoint, const ModelConfig& config,
                                          const Precision& precision, int layer,
                                          const std::array<InputStatistics, kMatrixInputs>& statistics) {
  return LayerCalibration(checkpoint, config, layer, statistics).run(precision, layer);
}

}  // namespace assay
