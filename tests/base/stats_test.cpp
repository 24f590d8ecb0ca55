// Expected numbers are those of numpy and scipy, printed by record_base.py.
#include "base/stats.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace assay {
namespace {

const std::vector<double> kX = {12.5, 3.25, 8.0, 1.75, 9.5, 4.0, 7.125, 2.5, 11.0, 6.75};
const std::vector<double> kY = {25.1, 7.3, 16.4, 3.2, 19.7, 8.4, 13.9, 5.6, 22.3, 13.0};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Stats, mean_and_deviation_agree_with_numpy) {
  EXPECT_DOUBLE_EQ(mean(kX), 6.6375);
  EXPECT_DOUBLE_EQ(standard_deviation(kX), 3.698934719017836);
}

TEST(Stats, few_values_are_defined) {
  EXPECT_TRUE(std::isnan(mean({})));
  EXPECT_TRUE(std::isnan(standard_deviation({})));
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
  EXPECT_TRUE(std::isnan(median({})));
  const std::vector<double> one = {4};
  EXPECT_EQ(mean(one), 4);
  EXPECT_EQ(standard_deviation(one), 0);
  EXPECT_EQ(quantile(one, 0.99), 4);
  EXPECT_TRUE(std::isnan(mean_interval_95(one).low));
  EXPECT_TRUE(std::isnan(mean_interval_95({}).high));
}

TEST(Quantile, agrees_with_numpy) {
  const std::array<std::pair<double, double>, 7> expected = {
      {{0, 1.75}, {0.05, 2.0875}, {0.25, 3.4375}, {0.5, 6.9375}, {0.9, 11.15}, {0.99, 12.365}, {1, 12.5}}};
  for (const auto& [q, value] : expected) EXPECT_NEAR(quantile(kX, q), value, 1e-14 * value) << q;
  EXPECT_DOUBLE_EQ(median(kX), 6.9375);
}

TEST(Quantile, infinities_are_ordinary_values_and_nan_is_not) {
  const std::vector<double> values = {1, 2, kInfinity, kInfinity, 3};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 0.5), 3);
  EXPECT_EQ(quantile(values, 0.6), kInfinity);
  EXPECT_EQ(quantile(values, 0.8), kInfinity);
  EXPECT_EQ(quantile(values, 0.9), kInfinity);  // between two infinities
  EXPECT_EQ(quantile(values, 1), kInfinity);
  EXPECT_TRUE(std::isnan(quantile(std::vector<double>{1, kNaN, 2}, 0)));
}

TEST(QuantileDeathTest, q_outside_the_unit_interval_is_a_bug) {
  EXPECT_DEATH(quantile(kX, 1.01), "CHECK failed");
  EXPECT_DEATH(quantile(kX, -0.01), "CHECK failed");
  EXPECT_DEATH(quantile(kX, kNaN), "CHECK failed");
}

RC_GTEST_PROP(Quantile, rises_with_q_and_stays_within_the_values, (std::vector<int> seeds)) {
  std::vector<double> values(seeds.begin(), seeds.end());
  RC_PRE(!values.empty());
  const auto [low, high] = std::ranges::minmax_element(values);
  double before = *low;
  for (double q = 0; q <= 1; q += 0.0625) {
    const double now = quantile(values, q);
    RC_ASSERT(now >= before);
    RC_ASSERT(now <= *high);
    before = now;
  }
}

// The table of t has three decimals and its continuation an error below 1e-4: the half width is off by at
// most 0.03 %.
TEST(MeanInterval, agrees_with_scipy) {
  struct Row {
    size_t n;
    double low;
    double high;
  };
  const std::array<Row, 7> rows = {{{2, -50.89119690480796, 66.64119690480797},
                                    {3, -3.5738688912352066, 19.40720222456854},
                                    {10, 3.9914415040159312, 9.28355849598407},
                                    {31, 5.4827627529536125, 8.170463053498},
                                    {32, 5.395580947410589, 8.03410655258941},
                                    {41, 5.635794007214951, 7.925181602541146},
                                    {101, 5.993294205161245, 7.397794903749647}}};
  for (const Row& row : rows) {
    std::vector<double> values(row.n);
    for (size_t i = 0; i < row.n; ++i) values[i] = kX[i % kX.size()];
    const Interval interval = mean_interval_95(values);
    const double half = (row.high - row.low) / 2;
    EXPECT_NEAR(interval.low, row.low, 3e-4 * half) << row.n;
    EXPECT_NEAR(interval.high, row.high, 3e-4 * half) << row.n;
  }
}

TEST(WilsonInterval, agrees_with_scipy) {
  struct Row {
    long successes;
    long trials;
    double low;
    double high;
  };
  const std::array<Row, 4> rows = {{{0, 10, 0, 0.27753279986288926},
                                    {3, 10, 0.10779126740630102, 0.6032218525388546},
                                    {10, 10, 0.7224672001371109, 1},
                                    {995, 1000, 0.9883490446266248, 0.9978624644726755}}};
  for (const Row& row : rows) {
    const Interval interval = wilson_interval_95(row.successes, row.trials);
    // The normal quantile is given to seven digits.
    EXPECT_NEAR(interval.low, row.low, 1e-7) << row.successes;
    EXPECT_NEAR(interval.high, row.high, 1e-7) << row.successes;
  }
  EXPECT_TRUE(std::isnan(wilson_interval_95(0, 0).low));
  EXPECT_TRUE(std::isnan(wilson_interval_95(1, -1).high));
}

TEST(FitLine, agrees_with_scipy) {
  const Line line = fit_line(kX, kY);
  EXPECT_NEAR(line.intercept, 0.2454212082376337, 1e-12);
  EXPECT_NEAR(line.slope, 1.9954167671205068, 1e-12);
  EXPECT_NEAR(line.r_squared, 0.9961242818844361, 1e-12);
}

TEST(FitLine, degenerate_input_is_defined) {
  const std::vector<double> same = {2, 2, 2};
  const std::vector<double> rising = {1, 2, 3};
  EXPECT_TRUE(std::isnan(fit_line(same, rising).slope));
  EXPECT_TRUE(std::isnan(fit_line({}, {}).slope));
  const Line flat = fit_line(rising, same);
  EXPECT_EQ(flat.slope, 0);
  EXPECT_EQ(flat.intercept, 2);
  EXPECT_EQ(flat.r_squared, 1);
}

}  // namespace
}  // namespace assay
