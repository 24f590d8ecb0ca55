// The hyperparameters of a decoder-only transformer, read from a checkpoint's metadata.
// Failure: kUnsupported names an architecture or feature that is not executed; kCorrupt a value that cannot
// be right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/backend.h"
#include "modelfile/checkpoint.h"

namespace assay {

enum class RopeScaling { kNone, kLinear, kDynamic, kYarn, kLlama3, kFactors, kCount };

struct ModelConfig {
  std::string architecture;  // "llama" (Llama 2 and 3, Mistral, SmolLM2, TinyStories) or "qwen2"
  std::string name;          // general.name, or the file's stem
  int n_layers = 0;
  int n_embedding = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int n_feed_forward = 0;
  int n_vocab = 0;
  int context_length = 0;  // as trained (after scaling)
  float norm_epsilon = 1e-5F;
  bool tied_embeddings = false;
  int sliding_window = 0;  // 0: none

  RopeStyle rope_style = RopeStyle::kAdjacentPairs;
  int rope_dim = 0;  // values rotated per head
  double rope_theta = 10000;
  RopeScaling rope_scaling = RopeScaling::kNone;
  double rope_factor = 1;
  int rope_original_context = 0;
  double rope_low_frequency_factor = 1, rope_high_frequency_factor = 4;  // llama3
  double yarn_beta_fast = 32, yarn_beta_slow = 1;
  double yarn_attention_factor =
      1;  // multiplies cosines and sines; 0.1 ln(factor) + 1 unless the file says otherwise
  std::vector<float> rope_factors;  // per pair, each frequency is divided by its own: the rope_freqs tensor

  static Result<ModelConfig> read(const Checkpoint& checkpoint);
};

}  // namespace assay
