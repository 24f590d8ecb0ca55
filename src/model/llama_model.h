// The llama family (Llama 2 and 3, Mistral, SmolLM2, TinyStories, Qwen2): RMS norm, rotary attention with
// shared key-value heads, gated feed-forward. The forward pass, written against Backend alone.
#pragma once

#include <memory>

#include "model/model.h"
#include "model/rope_table.h"
#include "model/weights.h"

namespace assay {

struct LlamaParts {
  ModelConfig config;
  Precision precision;
  std::shared_ptr<Backend> backend;
  ModelWeights weights;
  RopeTable rope;
  int max_batch_tokens = 0;
  int max_context = 0;
};

// Allocates the workspace of a step. kResourceExhausted when the memory cannot be had.
Result<std::unique_ptr<Model>> make_llama_model(LlamaParts parts);

}  // namespace assay
