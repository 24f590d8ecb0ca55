#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <set>
#include <vector>

#include "base/stats.h"

namespace assay {
namespace {

// Recorded from a second implementation, in Python: record_base.py.
TEST(Random, gives_the_recorded_numbers) {
  struct Stream {
    uint64_t seed;
    std::string_view name;
    std::array<uint64_t, 4> numbers;
  };
  const std::array<Stream, 3> streams = {{
      {0, "", {0x21382ef092ed7068, 0x5b54c052757adf62, 0xa64cb2cf68795072, 0xd35c15d5962035af}},
      {42, "weights", {0x228dd85dbf6c9c5d, 0x7b1bf340fe546165, 0x2ed8095ee484623c, 0x483e60c15bab1acd}},
      {UINT64_MAX, "x", {0xde15bc03e1b84084, 0xc2349c9a44254322, 0x90e3df74f83c2688, 0x6fa45a6051b1cbaf}},
  }};
  for (const Stream& stream : streams) {
    Random random(stream.seed, stream.name);
    for (const uint64_t number : stream.numbers) EXPECT_EQ(random.next(), number);
  }
}

TEST(Random, streams_of_one_seed_differ) {
  std::set<uint64_t> first;
  for (const std::string_view name : {"", "a", "b", "ab", "ba", "arrivals", "weights"}) {
    for (const uint64_t seed : {0, 1, 2}) first.insert(Random(seed, name).next());
  }
  EXPECT_EQ(first.size(), 21U);
}

// Chi-squared over 64 cells: mean 63, standard deviation sqrt(126) = 11.2; 63 +- 5 deviations.
void expect_even(const std::vector<int>& counts) {
  double total = 0;
  for (const int count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - expected) * (count - expected) / expected;
  const auto degrees = static_cast<double>(counts.size() - 1);
  EXPECT_NEAR(chi_squared, degrees, 5 * std::sqrt(2 * degrees));
}

TEST(Random, uniform_is_even_over_the_unit_interval) {
  Random random(1, "uniform");
  std::vector<int> counts(64);
  for (int i = 0; i < 200000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    ++counts[static_cast<size_t>(value * 64)];
  }
  expect_even(counts);
  for (int i = 0; i < 1000; ++i) {
    const double value = random.uniform(-3, 5);
    ASSERT_GE(value, -3);
    ASSERT_LT(value, 5);
  }
}

TEST(Random, below_is_even_even_where_a_remainder_would_be_biased) {
  Random random(2, "below");
  // 3 * 2^62: a plain remainder of 64 bits would give the lower third twice the weight of the rest.
  constexpr uint64_t kThree = uint64_t{3} << 62;
  std::vector<int> thirds(3);
  for (int i = 0; i < 30000; ++i) ++thirds[random.below(kThree) >> 62];
  expect_even(thirds);
  std::vector<int> counts(37);
  for (int i = 0; i < 100000; ++i) ++counts[random.below(37)];
  expect_even(counts);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, between_includes_both_ends_of_any_range) {
  Random random(3, "between");
  std::set<int64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.between(-2, 2));
  EXPECT_EQ(seen, (std::set<int64_t>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(random.between(7, 7), 7);
  EXPECT_EQ(random.between(INT64_MIN, INT64_MIN), INT64_MIN);
  int negative = 0;
  for (int i = 0; i < 1000; ++i) negative += random.between(INT64_MIN, INT64_MAX) < 0;
  EXPECT_NEAR(negative, 500, 80);  // 5 standard deviations of a fair coin
}

TEST(RandomDeathTest, empty_ranges_are_bugs) {
  Random random(4);
  EXPECT_DEATH(random.below(0), "CHECK failed");
  EXPECT_DEATH(random.between(1, 0), "CHECK failed.*1 vs 0");
}

// Kolmogorov-Smirnov: sqrt(n) times the largest distance is above 2.2 with probability 1e-4 (2 exp(-2 x^2)).
template <class Distribution>
void expect_distributed(std::vector<double> values, Distribution&& cumulative) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = cumulative(values[i]);
    distance = std::max({distance, std::fabs(static_cast<double>(i + 1) / n - expected),
                         std::fabs(static_cast<double>(i) / n - expected)});
  }
  EXPECT_LT(std::sqrt(n) * distance, 2.2);
}

TEST(Random, normal_is_standard_normal) {
  Random random(5, "normal");
  std::vector<double> values(50000);
  for (double& value : values) value = random.normal();
  expect_distributed(values, [](double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); });
  EXPECT_NEAR(mean(values), 0, 5 / std::sqrt(50000.0));
  EXPECT_NEAR(standard_deviation(values), 1, 5 / std::sqrt(2 * 50000.0));
}

TEST(Random, exponential_has_its_rate) {
  Random random(6, "exponential");
  std::vector<double> values(50000);
  for (double& value : values) value = random.exponential(4);
  expect_distributed(values, [](double x) { return 1 - std::exp(-4 * x); });
  EXPECT_GE(*std::ranges::min_element(values), 0);
}

}  // namespace
}  // namespace assay
