// Whole tensors between f32 and the float formats (f32, f16, bf16, fp8_e4m3, fp8_e5m2), little-endian as in
// files. Rounding is to nearest, ties to even; fp8 saturates (float8.h), f16 and bf16 overflow to infinity.
// Ownership: none, spans may not overlap. Thread safety: pure. Failure: CHECKs the sizes and that the format
// is a float. Cost: one pass, about a nanosecond a value or less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "numeric/format.h"

namespace assay {

struct ConversionCounts {
  // Values, infinities included, whose rounded magnitude lies beyond the largest finite value of the format.
  uint64_t saturated = 0;
  uint64_t nan = 0;

  bool operator==(const ConversionCounts&) const = default;
};

// dst: src.size() * bits(format) / 8 bytes, any alignment.
ConversionCounts encode_floats(Format format, std::span<const float> src, std::span<std::byte> dst);
// src: dst.size() * bits(format) / 8 bytes, any alignment. Exact.
void decode_floats(Format format, std::span<const std::byte> src, std::span<float> dst);

}  // namespace assay
