// f16 (IEEE 754 binary16) bits <-> f32. Exact one way; round to nearest, ties to even, the other.
// Overflow gives infinity. NaN stays NaN: sign and upper payload bits are kept, the quiet bit is set, in both
// directions, which is what F16C and AVX-512 instructions do, bit for bit. Pure, constexpr.
#pragma once

#include <bit>
#include <cstdint>

#include "numeric/float_grid.h"

namespace assay {

inline constexpr float kF16Max = 65504.0F;

constexpr uint16_t f32_to_f16_bits(float value) {
  using namespace numeric_internal;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & kF32Magnitude;
  const uint32_t rounded = round_to_grid<10, 15>(magnitude);
  uint32_t code = magnitude < kF32Infinity && rounded < 0x7c00 ? rounded : 0x7c00;
  code = magnitude > kF32Infinity ? 0x7e00 | ((magnitude >> 13) & 0x3ff) : code;
  return static_cast<uint16_t>(sign | code);
}

constexpr float f16_bits_to_f32(uint16_t bits) {
  using namespace numeric_internal;
  const uint32_t sign = (uint32_t{bits} & 0x8000) << 16;
  const uint32_t code = bits & 0x7fff;
  uint32_t magnitude = std::bit_cast<uint32_t>(grid_value<10, 15>(code));
  if (code >= 0x7c00) magnitude = kF32Infinity | (code << 13);
  if (code > 0x7c00) magnitude |= 0x00400000;
  return std::bit_cast<float>(sign | magnitude);
}

}  // namespace assay
