// The buffers of a step, allocated once for the largest batch. Internal to the llama model.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/aligned.h"
#include "base/error.h"
#include "kernels/backend.h"
#include "model/batch_layout.h"
#include "model/model_config.h"

namespace assay {

struct LlamaWorkspace {
  AlignedBuffer residual;   // [n, n_embedding]
  AlignedBuffer qkv;        // [n, query | key | value]
  AlignedBuffer attention;  // [n, n_heads * head_dim]
  AlignedBuffer gate_up;    // [n, gate | up]
  AlignedBuffer cosines;    // [n, rope_dim / 2]
  AlignedBuffer sines;      // [n, rope_dim / 2]
  // One per phase group: the input of the matmul at hand, in the group's format.
  std::array<ActivationBuffer, 2> inputs;
  BatchLayout layout;
  std::vector<int32_t> tokens;                 // [n], in row order
  std::vector<AttentionTask> attention_tasks;  // a run each
  std::vector<MatmulTask> matmul_tasks;
  std::vector<float> observed;  // [n, n_embedding]; only while there is an observer

  // What create() will allocate, up to the small lists of tasks.
  static uint64_t bytes_needed(const ModelConfig& config, int max_batch_tokens, bool two_groups);
  static Result<LlamaWorkspace> create(const ModelConfig& config, int max_batch_tokens, bool two_groups);
  uint64_t bytes() const;
};

}  // namespace assay
