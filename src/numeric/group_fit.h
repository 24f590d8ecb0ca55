// Scale and minimum of one group of an integer matrix, and the codes they give.
//
//   value ~ scale * code + minimum,  code in [0, levels]
//
// fit_group() minimises the weighted squared error: for a row of ranges, from the extremes inwards, it takes
// nearest codes and then the scale and minimum that are optimal for these codes (linear least squares), and
// keeps the best. The search is that of llama.cpp's make_qkx2_quants, with clipping (as AWQ does) in place of
// its rows of scales.
//
// Scales and minimums are rounded to f16 where that keeps them within 2^-11 of themselves, so that kernels can
// store them in two bytes. Pure; thread safe. Values are finite and of magnitude up to 2^126.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "numeric/format.h"
#include "numeric/integer_groups.h"

namespace assay {

// The codes of a format: int4 has 0..15 and a minimum per group, int8 is symmetric around 128.
struct GroupGrid {
  int levels = 15;      // largest code
  int zero_point = -1;  // negative: general minimum; else minimum = -zero_point * scale
};
GroupGrid grid_of(Format format);  // kInt8 or kInt4

struct GroupFit {
  float scale = 0;
  float minimum = 0;
};

// The smallest scale that reaches every value.
GroupFit reach_extremes(std::span<const float> values, const GroupGrid& grid);
// Least weighted squared error. weights: one per value, at least 0; empty: all equal. Never worse than
// reach_extremes(), up to the rounding to f16. Cost: about 20 passes over the group.
GroupFit fit_group(std::span<const float> values, std::span<const float> weights, const GroupGrid& grid);

// A whole matrix, every group fitted. column_weights: one per column, at least 0 (E[x^2] of the inputs), or empty.
// kInvalidArgument as quantise_groups().
Result<IntegerGroups> quantise_fitted(std::span<const float> values, int64_t rows, int64_t cols, Format format,
                                      int group, std::span<const float> column_weights);

// Nearest code, clamped; NaN gives the code 0.
inline uint8_t nearest_code(float value, const GroupFit& fit, const GroupGrid& grid) {
  if (fit.scale == 0) return static_cast<uint8_t>(grid.zero_point > 0 ? grid.zero_point : 0);
  const float position = (value - fit.minimum) / fit.scale;
  const auto top = static_cast<float>(grid.levels);
  const float clamped = position > 0 ? (position < top ? position : top) : 0.0F;
  return static_cast<uint8_t>(clamped + 0.5F);
}

inline float value_of(uint8_t code, const GroupFit& fit, const GroupGrid& grid) {
  if (grid.zero_point >= 0) return fit.scale * static_cast<float>(code - grid.zero_point);
  return fit.scale * static_cast<float>(code) + fit.minimum;
}

}  // namespace assay
