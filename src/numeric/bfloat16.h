// bf16 (the upper half of an f32) bits <-> f32. Exact one way; round to nearest, ties to even, the other,
// subnormals included (the AVX-512 BF16 instruction flushes those to zero; kernels that use it say so).
// Overflow gives infinity. NaN stays NaN: sign and upper payload bits are kept and the quiet bit is set on
// the way to bf16. Pure, constexpr.
#pragma once

#include <bit>
#include <cstdint>

#include "numeric/float_grid.h"

namespace assay {

inline constexpr float kBf16Max = 0x1.FEp127F;

constexpr uint16_t f32_to_bf16_bits(float value) {
  using namespace numeric_internal;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x0040;
  return static_cast<uint16_t>((bits & kF32Magnitude) > kF32Infinity ? nan : rounded);
}

constexpr float bf16_bits_to_f32(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

}  // namespace assay
