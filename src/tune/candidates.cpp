#include "tune/candidates.h"

namespace assay {
namespace {

Precision make(WeightFormat weights, Format prefill, Format decode, Format key, Format value) {
  return {.weights = weights,
          .prefill_activations = prefill,
          .decode_activations = decode,
          .kv_key = key,
          .kv_value = value,
          .exemptions = {}};
}

constexpr WeightFormat kAsShipped{.as_shipped = true};

constexpr WeightFormat weights(Format format, int group = 32) {
  return {.as_shipped = false, .format = format, .group = group};
}

}  // namespace

Precision reference_precision() {
  return {};
}

std::vector<Precision> default_candidates(bool holds_integers) {
  constexpr Format bf16 = Format::kBF16, int8 = Format::kInt8;
  std::vector<Precision> candidates;
  candidates.push_back(make(weights(bf16), bf16, bf16, bf16, bf16));
  candidates.push_back(make(weights(Format::kFp8E4M3), bf16, bf16, bf16, bf16));
  candidates.push_back(make(weights(int8), int8, int8, bf16, bf16));
  if (holds_integers) {
    candidates.push_back(make(kAsShipped, int8, int8, bf16, bf16));
    candidates.push_back(make(kAsShipped, int8, int8, int8, int8));
  } else {
    candidates.push_back(make(weights(int8), int8, int8, int8, int8));
    candidates.push_back(make(weights(Format::kInt4), int8, int8, bf16, bf16));
  }
  candidates.push_back(make(weights(Format::kInt4, 128), int8, int8, int8, int8));
  return candidates;
}

}  // namespace assay
