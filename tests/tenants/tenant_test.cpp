#include "tenants/tenant.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace assay {
namespace {

using Limit = TenantRefusal::Limit;

std::shared_ptr<Tenant> make(TenantPolicy policy, const Clock& clock) {
  policy.name = "t";
  return std::make_shared<Tenant>(std::move(policy), clock);
}

TEST(Tenant, WithoutLimits_admitsAndCounts) {
  VirtualClock clock;
  const auto tenant = make({}, clock);
  {
    auto a = tenant->admit(100);
    auto b = tenant->admit(5);
    ASSERT_TRUE(a && b);
    a->count_completion(7);
    a->count_cached_prompt(64);
    EXPECT_EQ(tenant->usage().in_flight, 2);
  }
  const TenantUsage usage = tenant->usage();
  EXPECT_EQ(usage.in_flight, 0);
  EXPECT_EQ(usage.requests_total, 2);
  EXPECT_EQ(usage.prompt_tokens_total, 105);
  EXPECT_EQ(usage.cached_prompt_tokens_total, 64);
  EXPECT_EQ(usage.completion_tokens_total, 7);
  EXPECT_FALSE(tenant->rates().requests || tenant->rates().tokens);
}

TEST(Tenant, InFlightLimit_refusesUntilOneEnds) {
  VirtualClock clock;
  const auto tenant = make({.in_flight_limit = 2}, clock);
  auto a = tenant->admit(1);
  {
    auto b = tenant->admit(1);
    const auto c = tenant->admit(1);
    ASSERT_FALSE(c);
    EXPECT_EQ(c.error().limit, Limit::kInFlight);
    EXPECT_EQ(c.error().bound, 2);
  }
  EXPECT_TRUE(tenant->admit(1));
  EXPECT_EQ(tenant->usage().refused_total, 1);
}

TEST(Tenant, RequestsPerMinute_saysWhenTheNextMayCome) {
  VirtualClock clock;
  const auto tenant = make({.requests_per_minute = 2}, clock);
  EXPECT_TRUE(tenant->admit(1));
  EXPECT_TRUE(tenant->admit(1));
  const auto refused = tenant->admit(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().limit, Limit::kRequests);
  EXPECT_DOUBLE_EQ(refused.error().retry_seconds, 30);
  clock.advance(29.9);
  EXPECT_FALSE(tenant->admit(1));
  clock.advance(0.2);
  EXPECT_TRUE(tenant->admit(1));
}

TEST(Tenant, AnswersBeyondTheTokens_holdTheNextRequest) {
  VirtualClock clock;
  const auto tenant = make({.tokens_per_minute = 60}, clock);
  {
    auto admitted = tenant->admit(20);
    ASSERT_TRUE(admitted);
    admitted->count_completion(70);
  }
  EXPECT_DOUBLE_EQ(tenant->rates().tokens->remaining, 0);
  EXPECT_DOUBLE_EQ(tenant->rates().tokens->reset_seconds, 90);
  const auto refused = tenant->admit(10);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().limit, Limit::kTokens);
  EXPECT_DOUBLE_EQ(refused.error().retry_seconds, 40);
  clock.advance(40);
  EXPECT_TRUE(tenant->admit(10));
}

TEST(Tenant, PromptAboveTheLimit_isAdmittedByAFullBucketAlone) {
  VirtualClock clock;
  const auto tenant = make({.tokens_per_minute = 60}, clock);
  EXPECT_TRUE(tenant->admit(600));
  EXPECT_DOUBLE_EQ(tenant->admit(600).error().retry_seconds, 600);
}

TEST(Tenant, Withdrawn_givesEverythingBack) {
  VirtualClock clock;
  const auto tenant = make({.requests_per_minute = 10, .tokens_per_minute = 100}, clock);
  {
    auto admitted = tenant->admit(80);
    admitted->withdraw();
    admitted->withdraw();
  }
  EXPECT_DOUBLE_EQ(tenant->rates().tokens->remaining, 100);
  EXPECT_DOUBLE_EQ(tenant->rates().requests->remaining, 10);
  EXPECT_EQ(tenant->usage().requests_total, 0);
  EXPECT_EQ(tenant->usage().prompt_tokens_total, 0);
  EXPECT_EQ(tenant->usage().in_flight, 0);
}

TEST(Tenant, Moved_admissionCountsOnce) {
  VirtualClock clock;
  const auto tenant = make({}, clock);
  auto admitted = tenant->admit(1);
  {
    const Tenant::Admission moved = std::move(*admitted);
    EXPECT_EQ(tenant->usage().in_flight, 1);
  }
  EXPECT_EQ(tenant->usage().in_flight, 0);
}

TEST(Tenant, ManyThreads_neverPassTheInFlightLimit) {
  VirtualClock clock;
  const auto tenant = make({.in_flight_limit = 3}, clock);
  std::atomic<int> inside{0}, most{0}, admitted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 2000; ++j) {
        auto mine = tenant->admit(1);
        if (!mine) continue;
        ++admitted;
        const int now = ++inside;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        mine->count_completion(1);
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 3);
  EXPECT_EQ(tenant->usage().in_flight, 0);
  EXPECT_EQ(tenant->usage().completion_tokens_total, admitted);
  EXPECT_EQ(tenant->usage().requests_total + tenant->usage().refused_total, 16000);
}

}  // namespace
}  // namespace assay
