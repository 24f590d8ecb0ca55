#include "numeric/error_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace assay {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> normal_values(size_t n, double scale) {
  Random random(11, "statistics");
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(scale * random.normal());
  return values;
}

TEST(Compare, gives_the_textbook_numbers) {
  const std::vector<float> values = {3, -4, 0, 0};
  const std::vector<float> approximation = {3.5F, -4, 0, -0.5F};
  const ErrorStatistics error = compare(values, approximation);
  EXPECT_EQ(error.count, 4U);
  EXPECT_EQ(error.max_absolute, 0.5);
  EXPECT_DOUBLE_EQ(error.rms, std::sqrt(0.5 / 4));
  EXPECT_DOUBLE_EQ(error.relative_rms, std::sqrt(0.5 / 25));
  EXPECT_DOUBLE_EQ(error.sqnr_db, 10 * std::log10(50.0));
}

TEST(Compare, equal_values_lose_nothing) {
  const std::vector<float> values = normal_values(100, 1);
  const ErrorStatistics error = compare(values, values);
  EXPECT_EQ(error.max_absolute, 0);
  EXPECT_EQ(error.relative_rms, 0);
  EXPECT_EQ(error.sqnr_db, std::numeric_limits<double>::infinity());
  EXPECT_EQ(compare({}, {}).count, 0U);
}

TEST(Compare, nan_and_infinity_are_left_out_of_the_sums) {
  const std::vector<float> values = {1, kNaN, kInfinity, 2, 3};
  const std::vector<float> approximation = {1, kNaN, 448, kInfinity, 4};
  const ErrorStatistics error = compare(values, approximation);
  EXPECT_EQ(error.count, 2U);
  EXPECT_EQ(error.nan, 1U);
  EXPECT_EQ(error.max_absolute, 1);
}

TEST(RoundTripError, is_zero_in_f32) {
  const std::vector<float> values = normal_values(5000, 1e-3);
  const auto error = round_trip_error(values, 5, 1000, {.format = Format::kF32});
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->count, 5000U);
  EXPECT_EQ(error->max_absolute, 0);
}

// For uniform rounding error of step s the mean square is s^2 / 12. A float with m mantissa bits has a step
// of 2^-m relative to the binade's floor, so the relative rms error of values spread evenly over binades in
// logarithm is 2^-m / sqrt(12) * sqrt(E[floor^2] / E[x^2]); for x log-uniform in [1, 2): E[x^2] = 3 / (2 ln
// 2), E[floor^2] = 1.
TEST(RoundTripError, of_floats_is_what_their_mantissa_predicts) {
  Random random(5, "binade");
  std::vector<float> values(60000);
  for (float& value : values) value = static_cast<float>(std::exp2(random.uniform()));
  const double spread = std::sqrt(2 * std::log(2.0) / 3);
  for (const auto& [format, mantissa] : {std::pair{Format::kF16, 10}, std::pair{Format::kBF16, 7},
                                         std::pair{Format::kFp8E4M3, 3}, std::pair{Format::kFp8E5M2, 2}}) {
    const auto error = round_trip_error(values, 60, 1000, {.format = format});
    ASSERT_TRUE(error.has_value());
    const double predicted = std::exp2(-mantissa) / std::sqrt(12.0) * spread;
    // 60,000 samples: the standard error of a mean square is about 0.9 / sqrt(60000) of it, 0.2 % of its
    // root. e5m2 has four codes in the binade, where log-uniform density is not quite even: 2 %.
    EXPECT_NEAR(error->relative_rms / predicted, 1, 0.03) << name(format);
    EXPECT_EQ(error->saturated, 0U);
    EXPECT_LE(error->max_absolute, std::exp2(-mantissa - 1));
  }
}

// Symmetric int8 over a group that spans [-1, 1]: step 1 / 127, mean square step^2 / 12.
TEST(RoundTripError, of_integers_is_a_twelfth_of_the_squared_step) {
  Random random(6, "uniform");
  std::vector<float> values(32 * 2000);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 32 == 0 ? 1.0F : static_cast<float>(random.uniform(-1, 1));
  }
  for (const auto& [format, half] : {std::pair{Format::kInt8, 127.0}, std::pair{Format::kInt4, 7.0}}) {
    const auto error = round_trip_error(values, 2000, 32, {.format = format, .group = 32});
    ASSERT_TRUE(error.has_value());
    const double predicted = std::sqrt(31.0 / 32 / 12) / half;  // one value in 32 is exact
    EXPECT_NEAR(error->rms / predicted, 1, 0.02) << name(format);
    EXPECT_LE(error->max_absolute, 0.5 / half * 1.001);
  }
}

TEST(RoundTripError, counts_what_saturates) {
  std::vector<float> values = normal_values(10000, 1);
  values[17] = 1e6F;
  values[9000] = -kInfinity;
  values[9001] = kNaN;
  const auto error = round_trip_error(values, 10, 1000, {.format = Format::kFp8E4M3});
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->saturated, 2U);
  EXPECT_EQ(error->nan, 1U);
  EXPECT_EQ(error->count, 9998U);
  EXPECT_EQ(error->max_absolute, 1e6 - 448);
}

TEST(RoundTripError, asymmetric_groups_fit_shifted_values_better) {
  Random random(8, "shifted");
  std::vector<float> values(64 * 64);
  for (float& value : values) value = static_cast<float>(random.uniform(3, 4));
  const WeightFormat int4{.format = Format::kInt4, .group = 32};
  const auto symmetric = round_trip_error(values, 64, 64, int4, GroupScheme::kSymmetric);
  const auto asymmetric = round_trip_error(values, 64, 64, int4, GroupScheme::kAsymmetric);
  ASSERT_TRUE(symmetric.has_value() && asymmetric.has_value());
  // Steps of about 4 / 7 and 1 / 15: a factor of 8.6 in error.
  EXPECT_GT(symmetric->rms, 6 * asymmetric->rms);
}

TEST(RoundTripError, refuses_what_it_cannot_measure) {
  const std::vector<float> values(64, 1);
  EXPECT_FALSE(round_trip_error(values, 1, 63, {.format = Format::kF16}).has_value());
  EXPECT_FALSE(round_trip_error(values, 1, 64, {.as_shipped = true}).has_value());
  EXPECT_FALSE(round_trip_error(values, 1, 64, {.format = Format::kInt8, .group = 5}).has_value());
  const std::vector<float> broken(64, kNaN);
  EXPECT_FALSE(round_trip_error(broken, 1, 64, {.format = Format::kInt8}).has_value());
}

}  // namespace
}  // namespace assay
