// An independent reading of the small float formats: values by ldexp from sign, exponent and mantissa fields,
// and rounding by search over all finite codes in double arithmetic, which is exact for every f32.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace assay::test {

struct FloatLayout {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  uint32_t largest;   // code of the largest finite value
  uint32_t infinity;  // code of infinity; 0 where there is none
};

inline constexpr FloatLayout kF16Layout = {5, 10, 15, 0x7bff, 0x7c00};
inline constexpr FloatLayout kBf16Layout = {8, 7, 127, 0x7f7f, 0x7f80};
inline constexpr FloatLayout kE4M3Layout = {4, 3, 7, 0x7e, 0};
inline constexpr FloatLayout kE5M2Layout = {5, 2, 15, 0x7b, 0x7c};

inline uint32_t sign_bit(const FloatLayout& layout) {
  return 1U << (layout.exponent_bits + layout.mantissa_bits);
}

// The value of any code; NaN where the code is one.
inline double value_of(const FloatLayout& layout, uint32_t code) {
  const uint32_t magnitude = code & (sign_bit(layout) - 1);
  const double sign = (code & sign_bit(layout)) != 0 ? -1 : 1;
  if (magnitude > layout.largest) {
    const bool infinite = layout.infinity != 0 && magnitude == layout.infinity;
    return infinite ? sign * std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::quiet_NaN();
  }
  const int exponent = static_cast<int>(magnitude >> layout.mantissa_bits);
  const int mantissa = static_cast<int>(magnitude & ((1U << layout.mantissa_bits) - 1));
  const int scale = 1 - layout.bias - layout.mantissa_bits;
  if (exponent == 0) return sign * std::ldexp(mantissa, scale);
  return sign * std::ldexp(mantissa + (1 << layout.mantissa_bits), exponent - 1 + scale);
}

// All finite magnitudes in rising order, and one more: the value that the next code would have if the
// exponent had no end. What rounds to it has overflowed.
inline std::vector<double> magnitudes_of(const FloatLayout& layout) {
  std::vector<double> values;
  for (uint32_t code = 0; code <= layout.largest; ++code) values.push_back(value_of(layout, code));
  values.push_back(2 * values.back() - values[values.size() - 2]);
  return values;
}

// Index into `magnitudes` of the nearest value, ties to the even index. `value` is finite.
inline uint32_t nearest(const std::vector<double>& magnitudes, double value) {
  const double target = std::fabs(value);
  uint32_t low = 0;
  auto high = static_cast<uint32_t>(magnitudes.size() - 1);
  if (target >= magnitudes[high]) return high;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (magnitudes[middle] <= target ? low : high) = middle;
  }
  const double below = target - magnitudes[low];
  const double above = magnitudes[high] - target;
  if (below != above) return below < above ? low : high;
  return low % 2 == 0 ? low : high;
}

}  // namespace assay::test
