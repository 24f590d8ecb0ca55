#include "numeric/group_fit.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "numeric/float16.h"

namespace assay {
namespace {

double weighted_error(std::span<const float> values, std::span<const float> weights, const GroupFit& fit,
                      const GroupGrid& grid) {
  double error = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference =
        static_cast<double>(value_of(nearest_code(values[i], fit, grid), fit, grid)) - values[i];
    error += difference * difference * (weights.empty() ? 1.0 : static_cast<double>(weights[i]));
  }
  return error;
}

std::vector<float> group_of(Random& random, int n, double scale) {
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = static_cast<float>(scale * (random.normal() + 0.3));
  return values;
}

TEST(GroupFit, values_on_a_grid_are_exact) {
  Random random(1, "grid");
  for (const Format format : {Format::kInt4, Format::kInt8}) {
    const GroupGrid grid = grid_of(format);
    for (int trial = 0; trial < 100; ++trial) {
      // Both ends of the grid appear, so that the extremes alone determine it; 2^-k and small multiples are
      // f16.
      const GroupFit truth{std::ldexp(1.0F, static_cast<int>(random.between(-10, 3))), 0};
      const float minimum = grid.zero_point >= 0 ? -static_cast<float>(grid.zero_point) * truth.scale
                                                 : truth.scale * static_cast<float>(random.between(-20, 20));
      const auto value = [&](int code) { return truth.scale * static_cast<float>(code) + minimum; };
      std::vector<float> values = {value(grid.zero_point >= 0 ? 1 : 0), value(grid.levels)};
      for (int i = 0; i < 30; ++i) {
        values.push_back(value(static_cast<int>(random.between(1, grid.levels))));
      }
      const GroupFit fit = fit_group(values, {}, grid);
      EXPECT_EQ(weighted_error(values, {}, fit, grid), 0);
      EXPECT_EQ(fit.scale, truth.scale);
      EXPECT_EQ(fit.minimum, minimum);
    }
  }
}

// Against every pair of a dense grid of scales and minimums around the extremes: the search may miss the optimum
// of a function with many local minima, but not by much.
TEST(GroupFit, is_close_to_exhaustive_search) {
  Random random(2, "search");
  const GroupGrid grid = grid_of(Format::kInt4);
  double fitted = 0, exhaustive = 0, extremes = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const std::vector<float> values = group_of(random, 32, 1);
    std::vector<float> weights(values.size());
    for (float& weight : weights) weight = static_cast<float>(random.uniform(0.1, 4));
    const GroupFit reach = reach_extremes(values, grid);
    double least = INFINITY;
    for (int s = 50; s <= 110; ++s) {
      for (int m = -10; m <= 50; ++m) {
        const float scale = reach.scale * static_cast<float>(s) / 100;
        const GroupFit fit{scale, reach.minimum + reach.scale * static_cast<float>(m) / 10};
        least = std::min(least, weighted_error(values, weights, fit, grid));
      }
    }
    const double found = weighted_error(values, weights, fit_group(values, weights, grid), grid);
    const double plain = weighted_error(values, weights, reach, grid);
    EXPECT_LE(found, plain * 1.01);
    fitted += found;
    exhaustive += least;
    extremes += plain;
  }
  EXPECT_LT(fitted, 1.2 * exhaustive);
  EXPECT_LT(fitted, 0.9 * extremes);
}

TEST(GroupFit, weights_decide_where_the_error_goes) {
  const GroupGrid grid = grid_of(Format::kInt4);
  Random random(3, "weights");
  std::vector<float> values = group_of(random, 64, 1);
  values[0] = 40;  // an outlier that does not matter
  std::vector<float> weights(values.size(), 1.0F);
  weights[0] = 0;
  const GroupFit ignoring = fit_group(values, weights, grid), heeding = fit_group(values, {}, grid);
  EXPECT_LT(ignoring.scale, 0.7F * heeding.scale);
}

TEST(GroupFit, extreme_magnitudes_stay_finite) {
  for (const Format format : {Format::kInt4, Format::kInt8}) {
    const GroupGrid grid = grid_of(format);
    for (const float unit : {0x1p126F, 0x1p-126F, 1e-45F, 1.0F}) {
      const std::vector<float> values = {unit, -unit, unit / 2, 0, unit};
      const GroupFit fit = fit_group(values, {}, grid);
      for (const float value : values) {
        const float back = value_of(nearest_code(value, fit, grid), fit, grid);
        ASSERT_TRUE(std::isfinite(back)) << unit;
        ASSERT_NEAR(back / unit, value / unit, unit > 1e-40F ? 0.1 : 200) << unit;
      }
    }
    const std::vector<float> zeros(32, 0.0F), equal(32, -3.25F);
    const GroupFit of_zeros = fit_group(zeros, {}, grid), of_equal = fit_group(equal, {}, grid);
    EXPECT_EQ(value_of(nearest_code(0, of_zeros, grid), of_zeros, grid), 0);
    EXPECT_NEAR(value_of(nearest_code(-3.25F, of_equal, grid), of_equal, grid), -3.25F, 0.01);
    EXPECT_EQ(nearest_code(NAN, of_equal, grid), of_equal.scale == 0 && grid.zero_point > 0 ? 128 : 0);
  }
}

TEST(GroupFit, scales_of_ordinary_size_are_f16) {
  Random random(4, "f16");
  for (int trial = 0; trial < 50; ++trial) {
    const std::vector<float> values = group_of(random, 32, 0.5);
    const GroupFit fit = fit_group(values, {}, grid_of(Format::kInt4));
    EXPECT_EQ(f16_bits_to_f32(f32_to_f16_bits(fit.scale)), fit.scale);
    EXPECT_EQ(f16_bits_to_f32(f32_to_f16_bits(fit.minimum)), fit.minimum);
  }
}

}  // namespace
}  // namespace assay
