#include "model/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "model/calibration.h"
#include "model/matrix_loader.h"

namespace assay {
namespace {

// One tensor to load: into a matrix or into a vector.
struct Item {
  const Tensor* tensor = nullptr;
  PackedMatrix* matrix = nullptr;
  std::vector<float>* vector = nullptr;
  bool as_shipped = false;
  WeightFormat executed;
  std::string name;  // as reported
  // In place of the tensor; null: none.
  PackedMatrix* calibrated_matrix = nullptr;
  std::vector<float>* calibrated_vector = nullptr;
};

class Plan {
 public:
  Plan(const Checkpoint& checkpoint, const ModelConfig& config, const Precision& precision,
       CalibratedWeights* calibrated)
      : checkpoint_(checkpoint), config_(config), precision_(precision), calibrated_(calibrated) {}

  std::span<const Item> items() const { return items_; }

  Result<void> add_all(ModelWeights& weights) {
    const int64_t n_embedding = config_.n_embedding;
    RETURN_IF_ERROR(add_matrix("token_embd.weight", -1, Role::kEmbedding, config_.n_vocab, n_embedding,
                               weights.embedding));
    weights.layers.resize(static_cast<size_t>(config_.n_layers));
    for (int layer = 0; layer < config_.n_layers; ++layer) {
      RETURN_IF_ERROR(add_layer(layer, weights.layers[static_cast<size_t>(layer)]));
    }
    RETURN_IF_ERROR(add_vector("output_norm.weight", n_embedding, weights.output_norm));
    RETURN_IF_ERROR(add_output(weights));
    return check_nothing_is_left_out();
  }

 private:
  const Tensor* take(const std::string& name) {
    const Tensor* tensor = checkpoint_.find(name);
    if (tensor != nullptr) used_.insert(name);
    return tensor;
  }
  std::unexpected<Error> missing(const std::string& name) const {
    return fail(ErrorCode::kCorrupt, checkpoint_.path().string(), "tensor {} is missing", name);
  }

  Result<void> add_layer(int layer, LayerWeights& weights) {
    const std::string block = fmt::format("blk.{}.", layer);
    const int64_t n_embedding = config_.n_embedding, n_feed_forward = config_.n_feed_forward;
    const int64_t n_query = int64_t{config_.n_heads} * config_.head_dim;
    const int64_t n_key = int64_t{config_.n_kv_heads} * config_.head_dim;
    struct Matrix {
      const char* name;
      Role role;
      int64_t n_outputs, n_inputs;
      PackedMatrix* matrix;
      std::vector<float>* bias;
    };
    const Matrix matrices[] = {
        {"attn_q", Role::kAttentionQuery, n_query, n_embedding, &weights.query, &weights.query_bias},
        {"attn_k", Role::kAttentionKey, n_key, n_embedding, &weights.key, &weights.key_bias},
        {"attn_v", Role::kAttentionValue, n_key, n_embedding, &weights.value, &weights.value_bias},
        {"attn_output", Role::kAttentionOutput, n_embedding, n_query, &weights.attention_output,
         &weights.attention_output_bias},
        {"ffn_gate", Role::kGate, n_feed_forward, n_embedding, &weights.gate, &weights.gate_bias},
        {"ffn_up", Role::kUp, n_feed_forward, n_embedding, &weights.up, &weights.up_bias},
        {"ffn_down", Role::kDown, n_embedding, n_feed_forward, &weights.down, &weights.down_bias},
    };
    RETURN_IF_ERROR(add_vector(block + "attn_norm.weight", n_embedding, weights.attention_norm));
    RETURN_IF_ERROR(add_vector(block + "ffn_norm.weight", n_embedding, weights.feed_forward_norm));
    for (const Matrix& m : matrices) {
      RETURN_IF_ERROR(
          add_matrix(block + m.name + ".weight", layer, m.role, m.n_outputs, m.n_inputs, *m.matrix));
      const std::string bias = block + m.name + ".bias";
      if (checkpoint_.find(bias) != nullptr) RETURN_IF_ERROR(add_vector(bias, m.n_outputs, *m.bias));
    }
    return {};
  }

  Result<void> add_output(ModelWeights& weights) {
    if (!config_.tied_embeddings) {
      return add_matrix("output.weight", -1, Role::kOutput, config_.n_vocab, config_.n_embedding,
                        weights.own_output);
    }
    used_.insert("output.weight");  // a tied file may store the copy all the same
    const Tensor* embedding = take("token_embd.weight");
    const WeightFormat wanted = without_inputs(precision_.weights_for(-1, Role::kOutput));
    ASSIGN_OR_RETURN(const WeightFormat executed, executed_format(*embedding, wanted));
    // Rounding afresh to the stored format may differ from what is stored, so as_shipped has to agree as
    // well.
    const Item& first = items_.front();
    if (executed == first.executed && wanted.as_shipped == first.as_shipped) return {};
    items_.push_back({.tensor = embedding,
                      .matrix = &weights.own_output,
                      .as_shipped = wanted.as_shipped,
                      .executed = executed,
                      .name = "output.weight"});
    return {};
  }

  Result<void> add_matrix(const std::string& name, int layer, Role role, int64_t n_outputs, int64_t n_inputs,
                          PackedMatrix& matrix) {
    const Tensor* tensor = take(name);
    if (tensor == nullptr) return missing(name);
    if (tensor->shape != std::vector<int64_t>{n_outputs, n_inputs}) {
      return fail(ErrorCode::kCorrupt, checkpoint_.path().string(), "{}: expected shape [{}, {}], found [{}]",
                  name, n_outputs, n_inputs, fmt::join(tensor->shape, ", "));
    }
    WeightFormat wanted = precision_.weights_for(layer, role);
    if (layer < 0) wanted = without_inputs(wanted);
    ASSIGN_OR_RETURN(const WeightFormat executed, executed_format(*tensor, wanted));
    PackedMatrix* ready = calibrated_ != nullptr ? find_calibrated(calibrated_->matrices, name) : nullptr;
    if (wanted.needs_calibration() && ready == nullptr) {
      return fail(ErrorCode::kInvalidArgument, name, "{} needs calibrated weights; none are given",
                  to_string(wanted));
    }
    if (ready != nullptr && (ready->n_outputs != n_outputs || ready->n_inputs != n_inputs)) {
      return fail(ErrorCode::kCorrupt, name, "calibrated weights are [{}, {}], the model's [{}, {}]",
                  ready->n_outputs, ready->n_inputs, n_outputs, n_inputs);
    }
    items_.push_back({.tensor = tensor,
                      .matrix = &matrix,
                      .as_shipped = wanted.as_shipped,
                      .executed = executed,
                      .name = name,
                      .calibrated_matrix = ready});
    return {};
  }

  template <class Map>
  static auto find_calibrated(Map& map, const std::string& name) -> decltype(&map.begin()->second) {
    const auto it = map.find(name);
    return it == map.end() ? nullptr : &it->second;
  }

  // Tables outside layers are looked up or read once: no blocks are dropped, and methods that need inputs fall to
  // nearest codes (least squares without inputs is worse: docs/quantisation.md).
  static WeightFormat without_inputs(WeightFormat format) {
    if (format.needs_calibration()) format.correction = Correction::kNone;
    format.sparsity = Sparsity::kNone;
    return format;
  }

  Result<void> add_vector(const std::string& name, int64_t n, std::vector<float>& vector) {
    const Tensor* tensor = take(name);
    if (tensor == nullptr) return missing(name);
    vector.resize(static_cast<size_t>(n));
    std::vector<float>* ready = calibrated_ != nullptr ? find_calibrated(calibrated_->vectors, name) : nullptr;
    if (ready != nullptr && ready->size() != static_cast<size_t>(n)) {
      return fail(ErrorCode::kCorrupt, name, "{} calibrated values, the model has {}", ready->size(), n);
    }
    items_.push_back({.tensor = tensor, .vector = &vector, .name = name, .calibrated_vector = ready});
    return {};
  }

  // A tensor that nobody reads means a model that this code does not compute.
  Result<void> check_nothing_is_left_out() const {
    for (const Tensor& tensor : checkpoint_.tensors()) {
      const bool is_rope_table =
          tensor.name == "rope_freqs.weight" || tensor.name.ends_with(".attn_rot_embd.weight");
      if (is_rope_table || used_.contains(tensor.name)) continue;
      return fail(ErrorCode::kUnsupported, checkpoint_.path().string(),
                  "tensor {} has no place in architecture {}; leaving it out would change the model",
                  tensor.name, config_.architecture);
    }
    return {};
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const Precision& precision_;
  CalibratedWeights* calibrated_;
  std::vector<Item> items_;
  std::set<std::string, std::less<>> used_;
};

uint64_t expected_bytes(const Item& item) {
  if (item.vector != nullptr) return static_cast<uint64_t>(item.tensor->n_values()) * sizeof(float);
  return packed_bytes(item.executed, item.tensor->shape[0], item.tensor->shape[1]);
}

Result<void> check_memory(const Checkpoint& checkpoint, std::span<const Item> items, uint64_t other_bytes) {
  uint64_t weights = 0;
  for (const Item& item : items) weights += expected_bytes(item);
  const uint64_t available = available_memory_bytes();
  if (weights <= available && other_bytes <= available - weights) return {};
  return fail(ErrorCode::kResourceExhausted, checkpoint.path().string(),
              "weights at this precision need {}, a step {}; {} are available", format_bytes(weights),
              format_bytes(other_bytes), format_bytes(available));
}

Result<void> load_item(const Item& item) {
  if (item.calibrated_matrix != nullptr) {
    *item.matrix = std::move(*item.calibrated_matrix);
    return {};
  }
  if (item.calibrated_vector != nullptr) {
    *item.vector = std::move(*item.calibrated_vector);
    return {};
  }
  if (item.vector != nullptr) {
    ASSIGN_OR_RETURN(*item.vector, load_vector(*item.tensor, static_cast<int64_t>(item.vector->size())));
    return {};
  }
  ASSIGN_OR_RETURN(*item.matrix, load_matrix(*item.tensor, item.executed, item.as_shipped));
  return {};
}

// Spreads the items over the threads, large ones first so that no thread is left alone with one at the end.
// The first error, in order of the items, is the one reported, however the threads raced.
class ParallelLoad {
 public:
  ParallelLoad(std::span<const Item> items, const std::function<bool(double)>& progress)
      : items_(items), progress_(progress) {
    order_.resize(items.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::stable_sort(order_, std::greater(), [&](size_t i) { return expected_bytes(items_[i]); });
    for (const Item& item : items) total_ += expected_bytes(item);
  }

  Result<void> run(int n_threads) {
    ThreadPool pool(n_threads);
    pool.parallel_for(static_cast<int64_t>(order_.size()),
                      [&](int64_t i) { load(order_[static_cast<size_t>(i)]); });
    if (cancelled_) return fail(ErrorCode::kCancelled, "loading", "stopped on request");
    if (error_) return std::unexpected(std::move(*error_));
    if (progress_ && !progress_(1.0)) return fail(ErrorCode::kCancelled, "loading", "stopped on request");
    return {};
  }

 private:
  void load(size_t index) {
    if (cancelled_ || index > failed_at_) return;
    if (auto loaded = load_item(items_[index]); !loaded) {
      const std::lock_guard lock(mutex_);
      if (index < failed_at_) {
        failed_at_ = index;
        error_ = std::move(loaded).error();
      }
      return;
    }
    done_ += expected_bytes(items_[index]);
    if (progress_ && std::this_thread::get_id() == caller_) {
      if (!progress_(static_cast<double>(done_) / static_cast<double>(total_))) cancelled_ = true;
    }
  }

  std::span<const Item> items_;
  const std::function<bool(double)>& progress_;
  const std::thread::id caller_ = std::this_thread::get_id();
  std::vector<size_t> order_;
  uint64_t total_ = 0;
  std::atomic<uint64_t> done_{0};
  std::atomic<bool> cancelled_{false};
  std::atomic<size_t> failed_at_{SIZE_MAX};
  std::mutex mutex_;
  std::optional<Error> error_;
};

EffectiveFormat describe(const Item& item) {
  EffectiveFormat format{
      .tensor = item.name, .stored = std::string(name(item.tensor->type)), .executed = item.executed};
  format.bytes = item.vector != nullptr ? item.vector->size() * sizeof(float) : item.matrix->bytes();
  return format;
}

}  // namespace

uint64_t ModelWeights::bytes() const {
  return std::accumulate(formats.begin(), formats.end(), uint64_t{0},
                         [](uint64_t sum, const EffectiveFormat& format) { return sum + format.bytes; });
}

Result<ModelWeights> ModelWeights::load(const Checkpoint& checkpoint, const ModelConfig& config,
                                        const Precision& precision, int n_threads, uint64_t other_bytes,
                                        const std::function<bool(double)>& progress,
                                        CalibratedWeights* calibrated) {
  ModelWeights weights;
  Plan plan(checkpoint, config, precision, calibrated);
  RETURN_IF_ERROR(plan.add_all(weights));
  RETURN_IF_ERROR(check_memory(checkpoint, plan.items(), other_bytes));
  ParallelLoad load(plan.items(), progress);
  if (auto loaded = load.run(n_threads); !loaded) {
    return std::unexpected(loaded.error().within(checkpoint.path().string()));
  }
  for (const Item& item : plan.items()) weights.formats.push_back(describe(item));
  return weights;
}

}  // namespace assay
