#include "telemetry/latency_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"

namespace assay {
namespace {

constexpr std::array kQuantiles = {0.0, 0.5, 0.95, 0.99, 1.0};
constexpr double kHalfBucket = 0.0201;  // sqrt(1.04) - 1, and rounding at a bucket's edge

TEST(LatencyWindow, quantiles_are_those_of_the_sorted_values_within_half_a_bucket) {
  Random random(7);
  for (const size_t n : {1U, 2U, 17U, 1000U}) {
    VirtualClock clock;
    LatencyWindow window(60, clock);
    std::vector<double> values;
    for (size_t i = 0; i < n; ++i) {
      values.push_back(std::exp(random.uniform(std::log(2e-5), std::log(900.0))));
      clock.set(random.uniform(0, 59.9));  // observations of every second of the window
      window.observe(values.back());
    }
    clock.set(59.9);
    std::ranges::sort(values);
    const auto found = window.quantiles(kQuantiles);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(window.count(), static_cast<int64_t>(n));
    for (size_t i = 0; i < kQuantiles.size(); ++i) {
      const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(kQuantiles[i] * static_cast<double>(n))));
      const double exact = values[rank - 1];
      EXPECT_NEAR((*found)[i] / exact, 1, kHalfBucket) << n << " values, q " << kQuantiles[i];
    }
  }
}

TEST(LatencyWindow, old_values_leave_with_their_second) {
  VirtualClock clock;
  LatencyWindow window(3, clock);
  constexpr std::array kMedian = {0.5};
  window.observe(1);
  clock.set(2.5);
  window.observe(10);
  window.observe(10);
  EXPECT_EQ(window.count(), 3);
  clock.set(3.1);  // second 0 is out, its place not used again yet
  EXPECT_EQ(window.count(), 2);
  EXPECT_NEAR(window.quantiles(kMedian)->front() / 10, 1, kHalfBucket);
  clock.set(3.2);
  window.observe(0.1);  // takes the place of second 0
  EXPECT_EQ(window.count(), 3);
  clock.set(100);
  EXPECT_EQ(window.count(), 0);
  EXPECT_FALSE(window.quantiles(kMedian).has_value());
}

TEST(LatencyWindow, values_out_of_range_count_at_the_ends) {
  VirtualClock clock;
  LatencyWindow window(1, clock);
  for (const double value : {0.0, -1.0, std::nan(""), 1e9, HUGE_VAL}) window.observe(value);
  EXPECT_EQ(window.count(), 5);
  const auto found = window.quantiles(kQuantiles);
  EXPECT_NEAR(found->front(), 1e-5, 1e-6);
  EXPECT_GT(found->back(), 900);
}

}  // namespace
}  // namespace assay
