#include "tenants/token_bucket.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace assay {
namespace {

TEST(TokenBucket, WithoutLimit_alwaysHasEnough) {
  TokenBucket bucket;
  bucket.take(1e9, 0);
  EXPECT_FALSE(bucket.limited());
  EXPECT_EQ(bucket.seconds_until(1e9, 0), 0);
  EXPECT_TRUE(std::isinf(bucket.available(0)));
}

TEST(TokenBucket, Debt_isPaidAtTheRate) {
  TokenBucket bucket(60, 100);
  bucket.take(90, 100);
  EXPECT_DOUBLE_EQ(bucket.available(100), -30);
  EXPECT_DOUBLE_EQ(bucket.seconds_until(10, 100), 40);
  EXPECT_DOUBLE_EQ(bucket.seconds_until(10, 130), 10);
  EXPECT_EQ(bucket.seconds_until(10, 140), 0);
  EXPECT_DOUBLE_EQ(bucket.available(1e6), 60) << "never more than a minute's worth";
}

TEST(TokenBucket, MoreThanItHolds_needsAFullBucket) {
  TokenBucket bucket(60, 0);
  EXPECT_EQ(bucket.seconds_until(1000, 0), 0);
  bucket.take(1, 0);
  EXPECT_DOUBLE_EQ(bucket.seconds_until(1000, 0), 1);
}

TEST(TokenBucket, TimeGoingBack_givesNothing) {
  TokenBucket bucket(60, 100);
  bucket.take(60, 100);
  EXPECT_DOUBLE_EQ(bucket.available(50), 0);
  bucket.take(0, 50);
  EXPECT_DOUBLE_EQ(bucket.available(110), 10) << "the same seconds do not count twice";
}

TEST(TokenBucket, ChangedRate_keepsTheDebt) {
  TokenBucket bucket(60, 0);
  bucket.take(100, 0);
  bucket.change_rate(600, 0);
  EXPECT_DOUBLE_EQ(bucket.available(0), -40);
  EXPECT_DOUBLE_EQ(bucket.seconds_until(60, 0), 10);
  bucket.change_rate(0, 0);
  EXPECT_FALSE(bucket.limited());
  bucket.change_rate(30, 0);
  EXPECT_DOUBLE_EQ(bucket.available(0), 30) << "a new limit starts full";
  bucket.change_rate(10, 0);
  EXPECT_DOUBLE_EQ(bucket.available(0), 10);
}

TEST(TokenBucket, GivenBack_neverAboveItsSize) {
  TokenBucket bucket(60, 0);
  bucket.take(20, 0);
  bucket.give_back(50, 0);
  EXPECT_DOUBLE_EQ(bucket.available(0), 60);
}

// Whoever takes as soon as it is allowed gets the burst once and the rate from then on, whatever the sizes.
TEST(TokenBucket, GreedyTaker_getsTheRateInTheLongRun) {
  Random random(7, "bucket");
  TokenBucket bucket(600, 0);
  double now = 0, taken = 0, largest = 0;
  while (now < 36000) {
    const double amount = 1 + static_cast<double>(random.below(300));
    now += bucket.seconds_until(amount, now);
    now = std::nextafter(now, 1e9);
    bucket.take(amount, now);
    taken += amount;
    largest = std::max(largest, amount);
  }
  // Level stays in [-rounding, 600]: taken = flowed + initial - level.
  EXPECT_GE(taken, 10 * now - 1);
  EXPECT_LE(taken, 10 * now + 600 + 1);
}

}  // namespace
}  // namespace assay
