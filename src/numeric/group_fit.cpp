#include "numeric/group_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "numeric/float16.h"
#include "numeric/quantiser_input.h"

namespace assay {
namespace {

constexpr float kSmallestScale = 0x1p-126F;
constexpr float kF16Normal = 0x1p-14F;
// Ranges tried, as shares of the distance between the extremes.
constexpr std::array<float, 9> kShares = {1.0F, 0.95F, 0.9F, 0.85F, 0.8F, 0.75F, 0.7F, 0.6F, 0.5F};
constexpr int kLanes = 8;

bool holds_f16(float value) {
  const float magnitude = std::fabs(value);
  return magnitude == 0 || (magnitude >= kF16Normal && magnitude <= kF16Max);
}

float to_f16(float value) {
  return f16_bits_to_f32(f32_to_f16_bits(value));
}

GroupFit round_to_f16(GroupFit fit, const GroupGrid& grid) {
  if (grid.zero_point >= 0) {
    if (holds_f16(fit.scale)) fit.scale = to_f16(fit.scale);
    fit.minimum = -static_cast<float>(grid.zero_point) * fit.scale;
  } else if (holds_f16(fit.scale) && holds_f16(fit.minimum)) {
    fit = {to_f16(fit.scale), to_f16(fit.minimum)};
  }
  return fit;
}

GroupFit reach(float low, float high, const GroupGrid& grid) {
  if (grid.zero_point >= 0) {
    const float half = static_cast<float>(grid.levels - grid.zero_point);
    const float largest = std::max(-low, high);
    if (largest <= 0) return {};
    const float scale = std::max(largest / half, kSmallestScale);
    return {scale, -static_cast<float>(grid.zero_point) * scale};
  }
  if (low == high) return {0, low};
  return {std::max((high - low) / static_cast<float>(grid.levels), kSmallestScale), low};
}

// Values divided by their largest magnitude and padded with weight 0 to whole lanes, so that sums of squares
// neither overflow nor vanish and the loops below vectorise.
struct Normalised {
  std::vector<float> values, weights, codes;
  float unit = 0;
  float low = 0, high = 0;

  Normalised(std::span<const float> from, std::span<const float> from_weights) {
    for (const float value : from) unit = std::max(unit, std::fabs(value));
    if (unit == 0) return;
    const size_t padded = (from.size() + kLanes - 1) / kLanes * kLanes;
    values.resize(padded);
    weights.resize(padded);
    codes.resize(padded);
    float heaviest = 0;
    for (const float weight : from_weights) heaviest = std::max(heaviest, weight);
    low = high = from[0] / unit;
    for (size_t i = 0; i < from.size(); ++i) {
      values[i] = from[i] / unit;
      weights[i] = heaviest > 0 ? from_weights[i] / heaviest : 1.0F;
      low = std::min(low, values[i]);
      high = std::max(high, values[i]);
    }
  }

  void encode(const GroupFit& fit, const GroupGrid& grid) {
    const float inverse = fit.scale > 0 ? 1 / fit.scale : 0;
    const auto top = static_cast<float>(grid.levels);
    constexpr float kRounder = 0x1.8p23F;  // the f32 adder rounds
    for (size_t i = 0; i < values.size(); ++i) {
      const float position = (values[i] - fit.minimum) * inverse;
      const float clamped = std::min(std::max(position, 0.0F), top);
      codes[i] = (clamped + kRounder) - kRounder;
    }
  }

  // Sum over i of weight * term(value, code).
  template <class Term>
  double sum(Term term) const {
    float lanes[kLanes] = {};
    for (size_t i = 0; i < values.size(); i += kLanes) {
      for (size_t j = 0; j < kLanes; ++j) lanes[j] += weights[i + j] * term(values[i + j], codes[i + j]);
    }
    double total = 0;
    for (const float lane : lanes) total += static_cast<double>(lane);
    return total;
  }

  double error(const GroupFit& fit) const {
    return sum([&](float v, float q) {
      const float e = v - (fit.scale * q + fit.minimum);
      return e * e;
    });
  }

  // Optimal for the codes at hand; `fallback` when they do not determine it.
  GroupFit solve(const GroupGrid& grid, const GroupFit& fallback) const {
    if (grid.zero_point >= 0) {
      const auto zero = static_cast<float>(grid.zero_point);
      const double squares = sum([&](float, float q) { return (q - zero) * (q - zero); });
      const double products = sum([&](float v, float q) { return v * (q - zero); });
      if (squares <= 0 || products <= 0) return fallback;
      const auto scale = static_cast<float>(products / squares);
      return {scale, -zero * scale};
    }
    const double w = sum([](float, float) { return 1.0F; });
    const double q = sum([](float, float code) { return code; });
    const double qq = sum([](float, float code) { return code * code; });
    const double v = sum([](float value, float) { return value; });
    const double qv = sum([](float value, float code) { return value * code; });
    const double determinant = w * qq - q * q;
    const double scale = (w * qv - q * v) / determinant;
    if (!(determinant > 1e-9 * w * qq) || !(scale > 0)) return fallback;
    return {static_cast<float>(scale), static_cast<float>((v - scale * q) / w)};
  }
};

}  // namespace

GroupGrid grid_of(Format format) {
  CHECK(is_integer(format));
  return format == Format::kInt8 ? GroupGrid{255, 128} : GroupGrid{15, -1};
}

GroupFit reach_extremes(std::span<const float> values, const GroupGrid& grid) {
  if (values.empty()) return {};
  const auto [low, high] = std::ranges::minmax(values);
  return round_to_f16(reach(low, high, grid), grid);
}

GroupFit fit_group(std::span<const float> values, std::span<const float> weights, const GroupGrid& grid) {
  CHECK(weights.empty() || weights.size() == values.size());
  Normalised group(values, weights);
  if (group.unit == 0 || (grid.zero_point < 0 && group.low == group.high)) return reach_extremes(values, grid);
  GroupFit best;
  double least = -1;
  const auto consider = [&](const GroupFit& fit) {
    group.encode(fit, grid);
    const double error = group.error(fit);
    if (least < 0 || error < least) {
      least = error;
      best = fit;
    }
  };
  const float center = grid.zero_point >= 0 ? 0 : (group.low + group.high) / 2;
  for (const float share : kShares) {
    const GroupFit start =
        reach(center + share * (group.low - center), center + share * (group.high - center), grid);
    consider(start);
    consider(group.solve(grid, start));  // of the codes that `start` gave
  }
  return round_to_f16({best.scale * group.unit, best.minimum * group.unit}, grid);
}

Result<IntegerGroups> quantise_fitted(std::span<const float> values, int64_t rows, int64_t cols, Format format,
                                      int group, std::span<const float> column_weights) {
  RETURN_IF_ERROR(numeric_internal::check_quantiser_input(values, rows, cols, format, group));
  CHECK(column_weights.empty() || static_cast<int64_t>(column_weights.size()) == cols);
  IntegerGroups groups = numeric_internal::allocate_groups(format, group, rows, cols);
  const GroupGrid grid = grid_of(format);
  groups.zero_point = grid.zero_point;
  size_t index = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; col += group, ++index) {
      const auto first = static_cast<size_t>(row * cols + col);
      const auto n = static_cast<size_t>(std::min<int64_t>(group, cols - col));
      const auto part = values.subspan(first, n);
      const GroupFit fit = fit_group(
          part, column_weights.empty() ? column_weights : column_weights.subspan(static_cast<size_t>(col), n),
          grid);
      groups.scales[index] = fit.scale;
      groups.minimums[index] = fit.minimum;
      for (size_t i = 0; i < n; ++i) groups.codes[first + i] = nearest_code(part[i], fit, grid);
    }
  }
  return groups;
}

}  // namespace assay
