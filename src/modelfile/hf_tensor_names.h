// Hugging Face tensor names to GGUF names. Internal to modelfile; pure; thread safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay::modelfile_internal {

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". The prefix "model." may be missing.
// Empty for names that have no counterpart. `architecture` decides what the norms around the feed-forward
// are.
std::optional<std::string> gguf_tensor_name(std::string_view name, std::string_view architecture);

// Tables that older files store and every reader computes ("...rotary_emb.inv_freq").
bool is_derived_buffer(std::string_view name);

}  // namespace assay::modelfile_internal
