// Translates config.json of Hugging Face models into GGUF metadata keys. Internal to modelfile; pure; thread
// safe.
//
// general.architecture: "llama" (llama, mistral, smollm), "qwen2", "qwen3", "gemma", "gemma2", "gemma3",
// "phi3"; any other model_type is passed on as it is, with a warning. With A = that name:
//   A.context_length, A.embedding_length, A.block_count, A.feed_forward_length, A.vocab_size,
//   A.attention.{head_count, head_count_kv, key_length, value_length, layer_norm_rms_epsilon,
//   sliding_window}, A.rope.{dimension_count, freq_base}, A.rope.scaling.{type, factor,
//   original_context_length, attn_factor}; type is "linear", "dynamic", "yarn",
//     "llama3" or "longrope"; llama3 adds low_freq_factor and high_freq_factor, yarn adds yarn_beta_fast and
//     yarn_beta_slow, longrope adds the arrays short_factor and long_factor,
//   A.attn_logit_softcapping, A.final_logit_softcapping (gemma2), A.attention.scale
//   (query_pre_attn_scalar^-0.5).
// Beyond GGUF: assay.tied_embeddings (boolean) and assay.torch_dtype (text).
//
// Failure: kCorrupt for missing or impossible values; kUnsupported for quantised checkpoints
// (quantization_config), mixtures of experts without names of ours, and activation functions other than the
// architecture's own.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "modelfile/json_document.h"
#include "modelfile/metadata.h"

namespace assay::modelfile_internal {

struct HfConfig {
  MetadataList metadata;
  std::string architecture;
  bool tied_embeddings = false;
  std::vector<std::string> warnings;
};

// `name` becomes general.name.
Result<HfConfig> translate_config(const JsonReader& config, std::string_view name);

}  // namespace assay::modelfile_internal
