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

// How the codes of an integer matrix are chosen. All but kNone and kFit need activations to calibrate on.
enum class Correction : uint8_t {
  kNone,  // nearest code, scale and minimum from the extremes of the group
  kFit,   // scale and minimum of least squared error (group_fit.h)
  kAwq,   // input channels scaled by their activations first (awq.h)
  kGptq,  // later columns make up for the errors of earlier ones (gptq.h)
  kCount
};
std::string_view name(Correction correction);  // "", "fit", "awq", "gptq"

// Which blocks of 16 outputs by 32 inputs of an int4 matrix are dropped (block_mask.h).
enum class Sparsity : uint8_t {
  kNone,
  kBlock50,   // half of the blocks of each tile of 16 outputs
  kGlobal50,  // half of the blocks of the matrix, a quarter to three quarters of each tile
  kCount
};
std::string_view name(Sparsity sparsity);  // "", "block50", "global50"

// How one weight matrix is stored and executed.
struct WeightFormat {
  // True: keep what the checkpoint holds. Block types with an integer layout run as int4/int8 groups without
  // loss, floats run as they are; `format` and `group` are ignored.
  bool as_shipped = false;
  Format format = Format::kF32;
  int group = 32;  // values that share a scale along the input dimension; integers only
  Correction correction = Correction::kNone;  // integers only
  Sparsity sparsity = Sparsity::kNone;        // int4 with groups of 32 and more only

  auto operator<=>(const WeightFormat&) const = default;

  bool needs_calibration() const {
    return !as_shipped && (correction == Correction::kAwq || correction == Correction::kGptq);
  }
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
  Format kv_key = Format::kF32;  // any format
  Format kv_value = Format::kF32;
  std::vector<Exemption> exemptions;  // the last match wins

  auto operator<=>(const Precision&) const = default;

  WeightFormat weights_for(int layer, Role role) const;
  Format activations_for(Phase phase) const {
    return phase == Phase::kPrefill ? prefill_activations : decode_activations;
  }
};

// "w=int4:32 a=int8/int8 kv=bf16/bf16" (activations prefill/decode, KV key/value; equal halves are written
// once, "w=file" is as_shipped, ":32" is the group, "/block50" and "/gptq" behind it are Sparsity and
// Correction); exemptions follow as " !down@3=bf16", layer "*" for all.
// The parts may come in any order; w= is required, a= and kv= default to f32. What an engine can execute is
// for the engine to say: every format name parses here. parse_precision(to_string(p)) == p when the fields
// that p ignores (group of a float format, format and group of as_shipped) hold their defaults, as they do
// after parsing. The reference is "w=f32 a=f32 kv=f32".
std::string to_string(const Precision& precision);
Result<Precision> parse_precision(std::string_view text);

std::string to_string(const WeightFormat& weights);  // "file", "int4:64/block50/gptq"
Result<WeightFormat> parse_weight_format(std::string_view text);  // group defaults to 32

}  // namespace assay
