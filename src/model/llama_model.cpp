#include "model/llama_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "model/llama_workspace.h"

namespace assay {
namespace {

// Rows that share an activation format.
struct RowGroup {
  Format format = Format::kF32;
  int64_t first = 0;
  int64_t count = 0;
  size_t buffer = 0;
};

const float* data_or_null(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

class LlamaModel final : public Model {
 public:
  LlamaModel(LlamaParts parts, LlamaWorkspace space)
      : parts_(std::move(parts)),
        space_(std::move(space)),
        backend_(*parts_.backend),
        n_embedding_(parts_.config.n_embedding),
        n_query_(int64_t{parts_.config.n_heads} * parts_.config.head_dim),
        n_key_(int64_t{parts_.config.n_kv_heads} * parts_.config.head_dim),
        qkv_stride_(n_query_ + 2 * n_key_),
        split_phases_(parts_.precision.prefill_activations != parts_.precision.decode_activations) {}

  const ModelConfig& config() const override { return parts_.config; }
  const Precision& precision() const override { return parts_.precision; }
  std::span<const EffectiveFormat> effective_formats() const override { return parts_.weights.formats; }
  Backend& backend() override { return backend_; }
  uint64_t weight_bytes() const override { return parts_.weights.bytes(); }
  uint64_t workspace_bytes() const override { return space_.bytes() + parts_.rope.bytes(); }
  int max_batch_tokens() const override { return parts_.max_batch_tokens; }
  int max_context() const override { return parts_.max_context; }
  KvLayout kv_layout(int page_tokens) const override;

  void forward(std::span<const SequenceSlice> batch, KvPool& pool, std::span<float> hidden) override;
  void project(std::span<const float> hidden, int64_t n_rows, Phase phase, std::span<float> logits) override;
  void set_observer(LayerObserver observer) override;
  void set_input_observer(InputObserver observer) override { input_observer_ = std::move(observer); }

 private:
  void check_batch(std::span<const SequenceSlice> batch, const KvPool& pool, std::span<float> hidden) const;
  void begin_step(std::span<const SequenceSlice> batch);
  void set_groups(int64_t n_prompt, int64_t n_rows);
  void attend(int layer, std::span<const SequenceSlice> batch, KvPool& pool);
  // The queries, keys and values of every row, the last two stored in their pages.
  void project_heads(int layer);
  void store_heads(int layer, std::span<const SequenceSlice> batch, KvPool& pool);
  // From here on the wanted rows are all there is: they move to the front of the residual stream.
  void keep_wanted_rows();
  void feed_forward(int layer);
  void finish_step(std::span<float> hidden);
  void observe(int layer, const float* rows);
  void observe_input(int layer, MatrixInput input, const ActivationView& rows) const {
    if (input_observer_) input_observer_(layer, input, rows);
  }

  std::span<const RowGroup> groups() const { return {groups_.data(), n_groups_}; }
  ActivationView norm_prepared(const RowGroup& group, const std::vector<float>& weight);
  // Queues output (+)= input x weights for the rows of a group.
  void queue(const RowGroup& group, const ActivationView& input, const PackedMatrix& weights,
             const std::vector<float>& bias, float* output, int64_t stride, bool accumulate);
  void run_queue();

  float* residual() { return space_.residual.as<float>(); }
  float* qkv() { return space_.qkv.as<float>(); }

  LlamaParts parts_;
  LlamaWorkspace space_;
  Backend& backend_;
  int64_t n_embedding_, n_query_, n_key_, qkv_stride_;
  bool split_phases_;
  std::array<RowGroup, 2> groups_;
  size_t n_groups_ = 0;
  LayerObserver observer_;
  InputObserver input_observer_;
};

KvLayout LlamaModel::kv_layout(int page_tokens) const {
  return {.n_layers = parts_.config.n_layers,
          .n_kv_heads = parts_.config.n_kv_heads,
          .head_dim = parts_.config.head_dim,
          .page_tokens = page_tokens,
          .key_format = parts_.precision.kv_key,
          .value_format = parts_.precision.kv_value};
}

void LlamaModel::check_batch(std::span<const SequenceSlice> batch, const KvPool& pool,
                             std::span<float> hidden) const {
  const KvLayout& layout = pool.layout();
  CHECK(layout.n_layers == parts_.config.n_layers && layout.n_kv_heads == parts_.config.n_kv_heads);
  CHECK(layout.head_dim == parts_.config.head_dim);
  int64_t n_tokens = 0, n_wanted = 0;
  for (const SequenceSlice& slice : batch) {
    const auto n = static_cast<int64_t>(slice.tokens.size());
    CHECK(slice.first_position >= 0);
    CHECK(slice.first_wanted >= 0 && slice.first_wanted <= n);
    n_wanted += slice.n_wanted();
    CHECK_OP(slice.first_position + n, <=, parts_.max_context);
    CHECK_OP(slice.first_position + n, <=, static_cast<int64_t>(slice.blocks.size()) * layout.page_tokens);
    for (const int32_t token : slice.tokens) CHECK(token >= 0 && token < parts_.config.n_vocab);
    n_tokens += n;
  }
  CHECK_OP(n_tokens, <=, parts_.max_batch_tokens);
  CHECK_OP(static_cast<int64_t>(hidden.size()), ==, n_wanted * n_embedding_);
  CHECK((!observer_ && !input_observer_) || n_wanted == n_tokens);
}

void LlamaModel::forward(std::span<const SequenceSlice> batch, KvPool& pool, std::span<float> hidden) {
  check_batch(batch, pool, hidden);
  begin_step(batch);
  if (space_.layout.n_rows() == 0) return;
  observe(-1, residual());
  for (int layer = 0; layer < parts_.config.n_layers; ++layer) {
    attend(layer, batch, pool);
    if (n_groups_ == 0) return;  // nothing is wanted but keys and values
    feed_forward(layer);
    observe(layer, residual());
  }
  finish_step(hidden);
}

void LlamaModel::set_groups(int64_t n_prompt, int64_t n_rows) {
  const Precision& precision = parts_.precision;
  n_groups_ = 0;
  if (n_prompt > 0) groups_[n_groups_++] = {precision.prefill_activations, 0, n_prompt, 0};
  if (n_rows > n_prompt)
    groups_[n_groups_++] = {precision.decode_activations, n_prompt, n_rows - n_prompt, 1};
}

void LlamaModel::begin_step(std::span<const SequenceSlice> batch) {
  BatchLayout& layout = space_.layout;
  layout.arrange(batch, split_phases_);
  set_groups(layout.n_prompt_rows(), layout.n_rows());

  const auto n_pairs = static_cast<size_t>(parts_.rope.n_pairs());
  for (const RowRun& run : layout.runs()) {
    const auto first = static_cast<size_t>(run.first_row), count = static_cast<size_t>(run.n_rows);
    std::copy_n(batch[run.slice].tokens.begin() + run.first_token, run.n_rows,
                space_.tokens.begin() + run.first_row);
    std::memcpy(space_.cosines.as<float>() + first * n_pairs, parts_.rope.cosines(run.first_position),
                count * n_pairs * sizeof(float));
    std::memcpy(space_.sines.as<float>() + first * n_pairs, parts_.rope.sines(run.first_position),
                count * n_pairs * sizeof(float));
  }
  backend_.embed(parts_.weights.embedding,
                 std::span(space_.tokens).first(static_cast<size_t>(layout.n_rows())), residual());
}

ActivationView LlamaModel::norm_prepared(const RowGroup& group, const std::vector<float>& weight) {
  return backend_.rms_norm_prepare(group.format, residual() + group.first * n_embedding_, weight.data(),
                                   group.count, n_embedding_, parts_.config.norm_epsilon,
                                   space_.inputs[group.buffer]);
}

void LlamaModel::queue(const RowGroup& group, const ActivationView& input, const PackedMatrix& weights,
                       const std::vector<float>& bias, float* output, int64_t stride, bool accumulate) {
  space_.matmul_tasks.push_back({.weights = &weights,
                                 .input = input,
                                 .output = output + group.first * stride,
                                 .output_stride = stride,
                                 .accumulate = accumulate,
                                 .bias = data_or_null(bias)});
}

void LlamaModel::run_queue() {
  backend_.matmul(space_.matmul_tasks);
  space_.matmul_tasks.clear();
}

void LlamaModel::project_heads(int layer) {
  const ModelConfig& config = parts_.config;
  const LayerWeights& weights = parts_.weights.layers[static_cast<size_t>(layer)];
  for (const RowGroup& group : groups()) {
    const ActivationView input = norm_prepared(group, weights.attention_norm);
    observe_input(layer, MatrixInput::kAttention, input);
    queue(group, input, weights.query, weights.query_bias, qkv(), qkv_stride_, false);
    queue(group, input, weights.key, weights.key_bias, qkv() + n_query_, qkv_stride_, false);
    queue(group, input, weights.value, weights.value_bias, qkv() + n_query_ + n_key_, qkv_stride_, false);
  }
  run_queue();
  // Keys lie right after queries and rotate alike: to rope() they are more heads.
  backend_.rope(qkv(), space_.layout.n_rows(), qkv_stride_, config.n_heads + config.n_kv_heads,
                config.head_dim, parts_.rope.n_pairs(), space_.cosines.as<float>(), space_.sines.as<float>(),
                config.rope_style);
}

void LlamaModel::store_heads(int layer, std::span<const SequenceSlice> batch, KvPool& pool) {
  for (const RowRun& run : space_.layout.runs()) {
    const float* rows = qkv() + run.first_row * qkv_stride_;
    backend_.store_kv(pool.view(layer, batch[run.slice].blocks), rows + n_query_, rows + n_query_ + n_key_,
                      qkv_stride_, run.n_rows, run.first_position);
  }
}

void LlamaModel::keep_wanted_rows() {
  const BatchLayout& layout = space_.layout;
  for (const WantedRun& run : layout.wanted()) {
    if (run.wanted_row == run.first_row) continue;
    std::memmove(residual() + run.wanted_row * n_embedding_, residual() + run.first_row * n_embedding_,
                 static_cast<size_t>(run.n_rows * n_embedding_) * sizeof(float));
  }
  set_groups(layout.n_wanted_prompt(), layout.n_wanted());
}

void LlamaModel::attend(int layer, std::span<const SequenceSlice> batch, KvPool& pool) {
  const ModelConfig& config = parts_.config;
  const LayerWeights& weights = parts_.weights.layers[static_cast<size_t>(layer)];
  project_heads(layer);
  store_heads(layer, batch, pool);

  float* attended = space_.attention.as<float>();
  space_.attention_tasks.clear();
  const auto add_task = [&](size_t slice, int64_t row, int64_t output_row, int n_rows, int first_position) {
    space_.attention_tasks.push_back({.queries = qkv() + row * qkv_stride_,
                                      .query_stride = qkv_stride_,
                                      .output = attended + output_row * n_query_,
                                      .output_stride = n_query_,
                                      .n_queries = n_rows,
                                      .first_position = first_position,
                                      .kv = pool.view(layer, batch[slice].blocks)});
  };
  if (layer + 1 < config.n_layers) {
    for (const RowRun& run : space_.layout.runs())
      add_task(run.slice, run.first_row, run.first_row, run.n_rows, run.first_position);
  } else {
    keep_wanted_rows();
    if (n_groups_ == 0) return;
    for (const WantedRun& run : space_.layout.wanted())
      add_task(run.slice, run.first_row, run.wanted_row, run.n_rows, run.first_position);
  }
  const AttentionShape shape{.n_heads = config.n_heads,
                             .n_kv_heads = config.n_kv_heads,
                             .head_dim = config.head_dim,
                             .scale = 1.0F / std::sqrt(static_cast<float>(config.head_dim)),
                             .window = config.sliding_window};
  backend_.attention(shape, space_.attention_tasks);

  for (const RowGroup& group : groups()) {
    const ActivationView input = backend_.prepare(group.format, attended + group.first * n_query_,
                                                  group.count, n_query_, space_.inputs[group.buffer]);
    observe_input(layer, MatrixInput::kAttentionOutput, input);
    queue(group, input, weights.attention_output, weights.attention_output_bias, residual(), n_embedding_,
          true);
  }
  run_queue();
}

void LlamaModel::feed_forward(int layer) {
  const LayerWeights& weights = parts_.weights.layers[static_cast<size_t>(layer)];
  const int64_t n_inner = parts_.config.n_feed_forward;
  float* gate = space_.gate_up.as<float>();
  for (const RowGroup& group : groups()) {
    const ActivationView input = norm_prepared(group, weights.feed_forward_norm);
    observe_input(layer, MatrixInput::kFeedForward, input);
    queue(group, input, weights.gate, weights.gate_bias, gate, 2 * n_inner, false);
    queue(group, input, weights.up, weights.up_bias, gate + n_inner, 2 * n_inner, false);
  }
  run_queue();
  for (const RowGroup& group : groups()) {
    const float* rows = gate + group.first * 2 * n_inner;
    const ActivationView input =
        backend_.gate_prepare(group.format, GateFunction::kSilu, rows, rows + n_inner, 2 * n_inner,
                              group.count, n_inner, space_.inputs[group.buffer]);
    observe_input(layer, MatrixInput::kDown, input);
    queue(group, input, weights.down, weights.down_bias, residual(), n_embedding_, true);
  }
  run_queue();
}

void LlamaModel::finish_step(std::span<float> hidden) {
  const auto norm = [&](int64_t row, int64_t output_row, int64_t n_rows) {
    backend_.rms_norm(residual() + row * n_embedding_, parts_.weights.output_norm.data(), n_rows,
                      n_embedding_, parts_.config.norm_epsilon, hidden.data() + output_row * n_embedding_);
  };
  if (space_.layout.wanted_in_slice_order()) {
    norm(0, 0, space_.layout.n_wanted());
  } else {
    for (const WantedRun& run : space_.layout.wanted()) norm(run.wanted_row, run.output_row, run.n_rows);
  }
  if (observer_) observer_(parts_.config.n_layers, hidden);
}

void LlamaModel::observe(int layer, const float* rows) {
  if (!observer_) return;
  const auto n_values = static_cast<size_t>(space_.layout.n_rows() * n_embedding_);
  if (space_.layout.in_slice_order()) return observer_(layer, {rows, n_values});
  for (const RowRun& run : space_.layout.runs()) {
    std::copy_n(rows + run.first_row * n_embedding_, run.n_rows * n_embedding_,
                space_.observed.begin() + run.output_row * n_embedding_);
  }
  observer_(layer, std::span(space_.observed).first(n_values));
}

void LlamaModel::project(std::span<const float> hidden, int64_t n_rows, Phase phase,
                         std::span<float> logits) {
  const int64_t n_vocab = parts_.config.n_vocab;
  CHECK(n_rows >= 0 && n_rows <= parts_.max_batch_tokens);
  CHECK_OP(static_cast<int64_t>(hidden.size()), ==, n_rows * n_embedding_);
  CHECK_OP(static_cast<int64_t>(logits.size()), ==, n_rows * n_vocab);
  if (n_rows == 0) return;
  const RowGroup all{.format = parts_.precision.activations_for(phase), .count = n_rows};
  const ActivationView input =
      backend_.prepare(all.format, hidden.data(), n_rows, n_embedding_, space_.inputs[all.buffer]);
  queue(all, input, parts_.weights.output(), {}, logits.data(), n_vocab, false);
  run_queue();
}

void LlamaModel::set_observer(LayerObserver observer) {
  observer_ = std::move(observer);
  const bool reorders = observer_ && split_phases_;
  space_.observed.resize(reorders ? static_cast<size_t>(parts_.max_batch_tokens * n_embedding_) : 0);
}

}  // namespace

Result<std::unique_ptr<Model>> make_llama_model(LlamaParts parts) {
  const Precision& precision = parts.precision;
  const bool two_groups = precision.prefill_activations != precision.decode_activations;
  ASSIGN_OR_RETURN(LlamaWorkspace space,
                   LlamaWorkspace::create(parts.config, parts.max_batch_tokens, two_groups));
  return std::make_unique<LlamaModel>(std::move(parts), std::move(space));
}

}  // namespace assay
