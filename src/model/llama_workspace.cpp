#include "model/llama_workspace.h"

#include <algorithm>

#include "base/units.h"
#include "kernels/packed_matrix.h"

namespace assay {

namespace {

struct Widths {
  int64_t qkv, query, gate_up, widest;

  explicit Widths(const ModelConfig& config)
      : qkv(int64_t{config.n_heads + 2 * config.n_kv_heads} * config.head_dim),
        query(int64_t{config.n_heads} * config.head_dim),
        gate_up(2 * int64_t{config.n_feed_forward}),
        widest(std::max({int64_t{config.n_embedding}, query, int64_t{config.n_feed_forward}})) {}
};

}  // namespace

uint64_t LlamaWorkspace::bytes_needed(const ModelConfig& config, int max_batch_tokens, bool two_groups) {
  const Widths widths(config);
  const int64_t floats = config.n_embedding + widths.qkv + widths.query + widths.gate_up + config.rope_dim;
  // Values, a scale for each 32 of them and a sum for each 16.
  const int64_t input_bytes = round_up(widths.widest, kColumnUnit) * 4 * (32 + 1 + 2) / 32;
  return static_cast<uint64_t>(max_batch_tokens) *
         static_cast<uint64_t>(floats * 4 + input_bytes * (two_groups ? 2 : 1));
}

Result<LlamaWorkspace> LlamaWorkspace::create(const ModelConfig& config, int max_batch_tokens,
                                              bool two_groups) {
  const auto floats = [&](int64_t n_cols) {
    return AlignedBuffer::allocate(static_cast<size_t>(max_batch_tokens) * static_cast<size_t>(n_cols) *
                                   sizeof(float));
  };
  const Widths widths(config);
  LlamaWorkspace space;
  ASSIGN_OR_RETURN(space.residual, floats(config.n_embedding));
  ASSIGN_OR_RETURN(space.qkv, floats(widths.qkv));
  ASSIGN_OR_RETURN(space.attention, floats(widths.query));
  ASSIGN_OR_RETURN(space.gate_up, floats(widths.gate_up));
  ASSIGN_OR_RETURN(space.cosines, floats(config.rope_dim / 2));
  ASSIGN_OR_RETURN(space.sines, floats(config.rope_dim / 2));
  for (size_t group = 0; group < (two_groups ? 2 : 1); ++group) {
    ASSIGN_OR_RETURN(space.inputs[group], ActivationBuffer::create(max_batch_tokens, widths.widest));
  }
  const auto n = static_cast<size_t>(max_batch_tokens);
  space.layout.reserve(max_batch_tokens);
  space.tokens.resize(n);
  space.attention_tasks.reserve(n);
  space.matmul_tasks.reserve(6);  // query, key and value of two groups
  return space;
}

uint64_t LlamaWorkspace::bytes() const {
  uint64_t total =
      residual.size() + qkv.size() + attention.size() + gate_up.size() + cosines.size() + sines.size();
  for (const ActivationBuffer& buffer : inputs) total += buffer.bytes();
  return total + tokens.size() * sizeof(int32_t) + attention_tasks.capacity() * sizeof(AttentionTask) +
         layout.bytes() + observed.size() * sizeof(float);
}

}  // namespace assay
