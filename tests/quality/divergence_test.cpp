#include "quality/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace assay {
namespace {

std::vector<float> random_logits(Random& random, size_t n, double scale) {
  std::vector<float> logits(n);
  for (float& logit : logits) logit = static_cast<float>(random.normal() * scale);
  return logits;
}

// The definition, term by term, in long double.
std::vector<long double> softmax(const std::vector<float>& logits) {
  const float best = *std::ranges::max_element(logits);
  std::vector<long double> p(logits.size());
  long double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(static_cast<long double>(logits[i]) - best);
  for (long double& value : p) value /= sum;
  return p;
}

std::vector<int> best_ids(const std::vector<float>& logits, int k) {
  std::vector<int> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(
      ids, [&](int a, int b) { return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)]; });
  ids.resize(static_cast<size_t>(k));
  return ids;
}

TEST(Divergence, agrees_with_the_definition_on_random_logits) {
  Random random(5, "divergence");
  for (int round = 0; round < 200; ++round) {
    const size_t n = static_cast<size_t>(random.between(11, 3000));
    const auto a = random_logits(random, n, random.uniform(0.1, 10));
    auto b = a;
    const double noise = random.uniform(0, 2);
    for (float& logit : b) logit += static_cast<float>(random.normal() * noise);
    const auto next = static_cast<int32_t>(random.below(n));
    const Divergence got = compare_logits(a, b, next, 10);

    const auto p = softmax(a), q = softmax(b);
    long double kl = 0;
    for (size_t i = 0; i < n; ++i) {
      if (p[i] > 0) kl += p[i] * (std::log(p[i]) - std::log(q[i]));
    }
    // f32 exponentials: relative error 1e-7 each on sums of like-signed terms, times the logits' spread.
    EXPECT_NEAR(got.kl, static_cast<double>(kl), 1e-5);
    EXPECT_NEAR(got.reference_nll, static_cast<double>(-std::log(p[static_cast<size_t>(next)])), 1e-5);
    EXPECT_NEAR(got.candidate_nll, static_cast<double>(-std::log(q[static_cast<size_t>(next)])), 1e-5);
    EXPECT_NEAR(negative_log_likelihood(b, next), got.candidate_nll, 1e-9);
    const auto top_a = best_ids(a, 10), top_b = best_ids(b, 10);
    EXPECT_EQ(got.same_top, top_a[0] == top_b[0]);
    int shared = 0;
    for (const int id : top_a) shared += std::ranges::count(top_b, id) > 0;
    EXPECT_DOUBLE_EQ(got.top_k_overlap, shared / 10.0);
    EXPECT_GE(got.kl, -1e-6);
  }
}

TEST(Divergence, same_logits_give_zero_and_shift_changes_nothing) {
  Random random(6, "shift");
  const auto a = random_logits(random, 500, 3);
  auto shifted = a;
  for (float& logit : shifted) logit += 32.0F;
  const Divergence same = compare_logits(a, a, 3, 10);
  EXPECT_EQ(same.kl, 0);
  EXPECT_TRUE(same.same_top);
  EXPECT_EQ(same.top_k_overlap, 1);
  EXPECT_NEAR(compare_logits(a, shifted, 3, 10).kl, 0, 1e-5);
}

TEST(Divergence, ties_go_to_the_lowest_id) {
  const std::vector<float> a = {1, 2, 2, 0}, b = {1, 0, 2, 2};
  EXPECT_FALSE(compare_logits(a, b, 0, 1).same_top);  // 1 against 2
  const std::vector<float> c = {0, 2, 2, 2};
  EXPECT_TRUE(compare_logits(a, c, 0, 1).same_top);  // 1 and 1
}

TEST(Divergence, nan_and_infinity_are_reported) {
  std::vector<float> a = {1, 2, 3}, b = a;
  b[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(compare_logits(a, b, 0, 2).finite);
  b[1] = -std::numeric_limits<float>::infinity();
  EXPECT_FALSE(compare_logits(a, b, 0, 2).finite);
  b[1] = 1e30F;
  EXPECT_TRUE(compare_logits(a, b, 0, 2).finite);
}

}  // namespace
}  // namespace assay
