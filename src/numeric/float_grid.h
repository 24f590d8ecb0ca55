// Rounding of f32 magnitudes onto the grid of a smaller binary float: the one idea behind float16.h and
// float8.h. Round to nearest, ties to even (IEEE 754-2019, 4.3.1), subnormals included. Pure, constexpr,
// branch-light enough for compilers to vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace assay::numeric_internal {

inline constexpr uint32_t kF32Infinity = 0x7f800000;
inline constexpr uint32_t kF32Magnitude = 0x7fffffff;

// `magnitude`: the bits of a non-negative f32; the result for infinity and NaN is of no use. Returns the
// nearest code of the float with `kMantissa` stored mantissa bits and exponent bias `kBias`, as if its
// exponent had no upper end: the caller compares the result with the largest finite code of the format.
template <int kMantissa, int kBias>
constexpr uint32_t round_to_grid(uint32_t magnitude) {
  constexpr int kDropped = 23 - kMantissa;
  constexpr uint32_t kSmallestNormal = uint32_t{127 + 1 - kBias} << 23;
  // Its last place is the smallest subnormal of the target, so the f32 adder does the rounding.
  constexpr float kRounder = std::bit_cast<float>(uint32_t{127 + 1 - kBias - kMantissa + 23} << 23);

  const uint32_t odd = (magnitude >> kDropped) & 1;
  const uint32_t normal = ((magnitude + ((uint32_t{1} << (kDropped - 1)) - 1) + odd) >> kDropped) -
                          (uint32_t{127 - kBias} << kMantissa);
  if (magnitude >= kSmallestNormal) return normal;
  return std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + kRounder) -
         std::bit_cast<uint32_t>(kRounder);
}

// The exact value of a finite code (sign removed) of that float.
template <int kMantissa, int kBias>
constexpr float grid_value(uint32_t code) {
  constexpr float kSubnormalStep = std::bit_cast<float>(uint32_t{127 + 1 - kBias - kMantissa} << 23);
  const float subnormal = static_cast<float>(static_cast<int32_t>(code)) * kSubnormalStep;
  const auto normal = std::bit_cast<float>((code << (23 - kMantissa)) + (uint32_t{127 - kBias} << 23));
  return code >> kMantissa == 0 ? subnormal : normal;
}

}  // namespace assay::numeric_internal
