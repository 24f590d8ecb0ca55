#include "model/llama_workspace.h"

#include <algorithm>

namespace assay {

Result<LlamaWorkspace> LlamaWorkspace::create(const ModelConfig& config, int max_batch_tokens,
                                              bool two_groups) {
  const auto floats = [&](int64_t n_cols) {
    return AlignedBuffer::allocate(static_cast<size_t>(max_batch_tokens) * static_cast<size_t>(n_cols) *
                                   sizeof(float));
  };
  const int64_t n_query = int64_t{config.n_heads} * config.head_dim;
  const int64_t n_key = int64_t{config.n_kv_heads} * config.head_dim;
  LlamaWorkspace space;
  ASSIGN_OR_RETURN(space.residual, floats(config.n_embedding));
  ASSIGN_OR_RETURN(space.qkv, floats(n_query + 2 * n_key));
  ASSIGN_OR_RETURN(space.attention, floats(n_query));
  ASSIGN_OR_RETURN(space.gate_up, floats(2 * int64_t{config.n_feed_forward}));
  ASSIGN_OR_RETURN(space.cosines, floats(config.rope_dim / 2));
  ASSIGN_OR_RETURN(space.sines, floats(config.rope_dim / 2));
  const int64_t widest = std::max({int64_t{config.n_embedding}, n_query, int64_t{config.n_feed_forward}});
  for (size_t group = 0; group < (two_groups ? 2 : 1); ++group) {
    ASSIGN_OR_RETURN(space.inputs[group], ActivationBuffer::create(max_batch_tokens, widest));
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
