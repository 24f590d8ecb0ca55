#include "modelfile/hf_tensor_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::modelfile_internal {
namespace {

using Rename = std::pair<std::string_view, std::string_view>;

constexpr Rename kOutside[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
};
constexpr Rename kInLayer[] = {
    {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"}, {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},       {"mlp.gate_up_proj", "ffn_up"},
};
// Where the feed-forward has a norm on either side, "post_attention" is what it says; elsewhere it is the
// norm before the feed-forward.
constexpr Rename kTwoNorms[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
};
constexpr Rename kOneNorm[] = {{"post_attention_layernorm", "ffn_norm"}};

template <size_t n>
std::string_view rename(const Rename (&table)[n], std::string_view name) {
  const auto* found =
      std::find_if(table, table + n, [&](const Rename& entry) { return entry.first == name; });
  return found == table + n ? std::string_view() : found->second;
}

}  // namespace

bool is_derived_buffer(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attention.masked_bias");
}

std::optional<std::string> gguf_tensor_name(std::string_view name, std::string_view architecture) {
  if (name.starts_with("model.")) name.remove_prefix(6);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view kind = name.substr(dot + 1);
  if (kind != "weight" && kind != "bias") return std::nullopt;
  std::string_view part = name.substr(0, dot);
  if (!part.starts_with("layers.")) {
    const std::string_view renamed = rename(kOutside, part);
    if (renamed.empty()) return std::nullopt;
    return fmt::format("{}.{}", renamed, kind);
  }
  part.remove_prefix(7);
  const size_t end = part.find('.');
  if (end == std::string_view::npos || end == 0 || end > 6) return std::nullopt;
  const std::string_view layer = part.substr(0, end);
  const bool number = std::all_of(layer.begin(), layer.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number || (layer.size() > 1 && layer[0] == '0')) return std::nullopt;
  part.remove_prefix(end + 1);
  const bool two_norms = architecture == "gemma2" || architecture == "gemma3";
  std::string_view renamed = rename(kInLayer, part);
  if (renamed.empty()) renamed = two_norms ? rename(kTwoNorms, part) : rename(kOneNorm, part);
  if (renamed.empty()) return std::nullopt;
  return fmt::format("blk.{}.{}.{}", layer, renamed, kind);
}

}  // namespace assay::modelfile_internal
