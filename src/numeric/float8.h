// fp8 bits <-> f32, as in the OCP 8-bit Floating Point Specification (OFP8), revision 1.0:
//   e4m3: bias 7, largest 448 (0x7e), no infinity, NaN is S.1111.111;
//   e5m2: bias 15, largest 57344 (0x7b), infinity 0x7c, NaN S.11111.{01,10,11}.
// Round to nearest, ties to even, before the overflow rule: in e4m3, magnitudes up to and including 464 round
// to 448; in e5m2, magnitudes below 61440 round to 57344. Beyond that, and for infinities:
//   kSaturate (the default)  the largest finite value, sign kept;
//   kSpecial                 NaN in e4m3, infinity in e5m2 (the specification's non-saturating mode).
// NaN stays NaN, sign kept: e4m3 0x7f, e5m2 0x7e. Pure, constexpr; decoding is a lookup in a 1 KiB table.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "numeric/float_grid.h"

namespace assay {

enum class Overflow : uint8_t { kSaturate, kSpecial };

inline constexpr float kE4M3Max = 448.0F;
inline constexpr float kE5M2Max = 57344.0F;

constexpr uint8_t f32_to_e4m3_bits(float value, Overflow overflow = Overflow::kSaturate) {
  using namespace numeric_internal;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 24) & 0x80;
  const uint32_t magnitude = bits & kF32Magnitude;
  const uint32_t beyond = overflow == Overflow::kSaturate ? 0x7e : 0x7f;
  const uint32_t rounded = round_to_grid<3, 7>(magnitude);
  uint32_t code = magnitude < kF32Infinity && rounded <= 0x7e ? rounded : beyond;
  code = magnitude > kF32Infinity ? 0x7f : code;
  return static_cast<uint8_t>(sign | code);
}

constexpr uint8_t f32_to_e5m2_bits(float value, Overflow overflow = Overflow::kSaturate) {
  using namespace numeric_internal;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 24) & 0x80;
  const uint32_t magnitude = bits & kF32Magnitude;
  const uint32_t beyond = overflow == Overflow::kSaturate ? 0x7b : 0x7c;
  const uint32_t rounded = round_to_grid<2, 15>(magnitude);
  uint32_t code = magnitude < kF32Infinity && rounded <= 0x7b ? rounded : beyond;
  code = magnitude > kF32Infinity ? 0x7e : code;
  return static_cast<uint8_t>(sign | code);
}

namespace numeric_internal {

constexpr std::array<float, 256> e4m3_table() {
  std::array<float, 256> table{};
  for (uint32_t code = 0; code < 128; ++code) {
    const float value = code < 0x7f ? grid_value<3, 7>(code) : std::numeric_limits<float>::quiet_NaN();
    table[code] = value;
    table[code + 128] = -value;
  }
  return table;
}

constexpr std::array<float, 256> e5m2_table() {
  std::array<float, 256> table{};
  for (uint32_t code = 0; code < 128; ++code) {
    const float value = code < 0x7c   ? grid_value<2, 15>(code)
                        : code > 0x7c ? std::numeric_limits<float>::quiet_NaN()
                                      : std::numeric_limits<float>::infinity();
    table[code] = value;
    table[code + 128] = -value;
  }
  return table;
}

}  // namespace numeric_internal

inline constexpr std::array<float, 256> kE4M3Values = numeric_internal::e4m3_table();
inline constexpr std::array<float, 256> kE5M2Values = numeric_internal::e5m2_table();

constexpr float e4m3_bits_to_f32(uint8_t bits) {
  return kE4M3Values[bits];
}
constexpr float e5m2_bits_to_f32(uint8_t bits) {
  return kE5M2Values[bits];
}

}  // namespace assay
