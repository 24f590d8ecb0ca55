// A precision: which format for weights, activations (by phase) and KV cache, with exemptions by layer and
// role. Plain values; thread safe.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "numeric/format.h"

namespace assay {

// Prompt tokens are prefill whenever they are computed; sampled tokens are decode, even when recomputed.
enum class Phase : uint8_t { kPrefill, kDecode, kCount };

// What a weight matrix does. Norms, biases and rope tables are always f32 and have no role here.
enum class Role : uint8_t {
  kEmbedding,
  kAttentionQuery,
  kAttentionKey,
  kAttentionValue,
  kAttentionOutput,
  kGate,
  kUp,
  kDown,
  kOutput,
  kCount
};
std::string_view name(Role role);  // "embedding", "attention_query", ...
Result<Role> parse_role(std::string_view text);

// How one weight matrix is stored and executed.
struct WeightFormat {
  // True: keep what the checkpoint holds. Block types with an integer layout run as int4/int8 groups without
  // loss, floats run as they are; `format` and `group` are ignored.
  bool as_shipped = false;
  Format format = Format::kF32;
  int group = 32;  // values that share a scale along the input dimension; integers only

  auto operator<=>(const WeightFormat&) const = default;
};

struct Exemption {
  int layer = -1;  // -1: every layer (and the matrices outside layers)
  Role role = Role::kDown;
  WeightFormat weights;

  auto operator<=>(const Exemption&) const = default;
};

struct Precision {
  WeightFormat weights;
  Format prefill_activations = Format::kF32;  // f32, bf16 or int8
  Format decode_activations = Format::kF32;
  Format kv_key = Format::kF32;  // f32, bf16, int8 (more to come)
  Format kv_value = Format::kF32;
  std::vector<Exemption> exemptions;  // the last match wins

  auto operator<=>(const Precision&) const = default;

  WeightFormat weights_for(int layer, Role role) const;
  Format activations_for(Phase phase) const {
    return phase == Phase::kPrefill ? prefill_activations : decode_activations;
  }
};

// "w=int4:32 a=int8/int8 kv=bf16/bf16" (activations prefill/decode, KV key/value; equal halves are written
// once, "w=file" is as_shipped, ":32" is the group); exemptions follow as " !down@3=bf16", layer "*" for all.
// The parts may come in any order; w= is required, a= and kv= default to f32. What an engine can execute is
// for the engine to say: every format name parses here. parse_precision(to_string(p)) == p when the fields
// that p ignores (group of a float format, format and group of as_shipped) hold their defaults, as they do
// after parsing. The reference is "w=f32 a=f32 kv=f32".
std::string to_string(const Precision& precision);
Result<Precision> parse_precision(std::string_view text);

std::string to_string(const WeightFormat& weights);               // "file", "bf16", "int4:32"
Result<WeightFormat> parse_weight_format(std::string_view text);  // group defaults to 32

}  // namespace assay
