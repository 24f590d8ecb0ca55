#include "plan/choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"
#include "plan/verdict.h"

namespace assay {
namespace {

// Rates are chosen so that request_seconds of the default workload (256 in, 128 out) is `seconds`.
Candidate measured(double seconds, double mean_kl, uint64_t bytes) {
  Candidate candidate;
  candidate.quality.emplace().mean_kl = mean_kl;
  candidate.quality->top1_agreement = 1 - mean_kl;
  candidate.memory.emplace().weight_bytes = bytes;
  SpeedRecord& speed = candidate.speed.emplace();
  speed.prefill_tokens_per_second.median = 512 / seconds;
  speed.decode_tokens_per_second.median = 256 / seconds;
  speed.ttft_seconds.median = seconds / 2;
  speed.tpot_seconds.median = seconds / 256;
  return candidate;
}

std::vector<Candidate> random_candidates(Random& random, const Contract& contract) {
  std::vector<Candidate> candidates;
  for (int64_t n = random.between(0, 12); n > 0; --n) {
    // Few distinct values, so that ties and duplicates occur.
    candidates.push_back(measured(static_cast<double>(random.between(1, 6)),
                                  static_cast<double>(random.below(4)) * 0.1, random.below(3) + 1));
    if (random.below(6) == 0) candidates.back().failure = "did not load";
    judge(contract, candidates.back());
  }
  return candidates;
}

TEST(Verdict, each_bound_breaks_alone) {
  const Candidate base =
      measured(2.0, 0.1, 1000);  // ttft 1 s, tpot 7.8 ms, e2e 1.99 s, prefill 256/s, decode 128/s
  const auto broken = [&](const Contract& contract) {
    Candidate candidate = base;
    judge(contract, candidate);
    return candidate.holds ? std::string("holds") : candidate.broken.at(0).bound;
  };
  Contract contract;
  EXPECT_EQ(broken(contract), "holds");
  contract.quality = {.max_mean_kl = 0.1, .min_top1 = 0.9};
  contract.latency = {.ttft_seconds = 1.0, .tpot_seconds = 0.0078125, .e2e_seconds = 2.0};
  contract.throughput = {.prefill_tokens_per_second = 256, .decode_tokens_per_second = 128};
  contract.memory.resident_bytes = 1000;
  EXPECT_EQ(broken(contract), "holds");  // a bound met exactly is met

  Contract tight = contract;
  tight.quality.max_mean_kl = 0.0999;
  EXPECT_EQ(broken(tight), "quality.max_mean_kl");
  tight = contract, tight.quality.min_top1 = 0.901;
  EXPECT_EQ(broken(tight), "quality.min_top1");
  tight = contract, tight.latency.ttft_seconds = 0.99;
  EXPECT_EQ(broken(tight), "latency.ttft");
  tight = contract, tight.latency.tpot_seconds = 0.0078;
  EXPECT_EQ(broken(tight), "latency.tpot");
  tight = contract, tight.latency.e2e_seconds = 1.99;
  EXPECT_EQ(broken(tight), "latency.e2e");
  tight = contract, tight.throughput.prefill_tokens_per_second = 257;
  EXPECT_EQ(broken(tight), "throughput.prefill");
  tight = contract, tight.throughput.decode_tokens_per_second = 129;
  EXPECT_EQ(broken(tight), "throughput.decode");
  tight = contract, tight.memory.resident_bytes = 999;
  EXPECT_EQ(broken(tight), "memory.resident");
}

TEST(Verdict, missing_measurement_failure_and_nan_do_not_hold) {
  const Contract contract;
  Candidate candidate = measured(1, 0, 1);
  candidate.speed.reset();
  judge(contract, candidate);
  EXPECT_FALSE(candidate.holds);
  candidate = measured(1, 0, 1);
  candidate.failure = "out of memory";
  judge(contract, candidate);
  EXPECT_FALSE(candidate.holds);
  candidate = measured(1, 0, 1);
  candidate.quality->n_not_finite = 3;
  judge(contract, candidate);
  EXPECT_FALSE(candidate.holds);
  Contract bounded;
  bounded.quality.max_mean_kl = 1;
  candidate = measured(1, std::nan(""), 1);
  judge(bounded, candidate);
  EXPECT_FALSE(candidate.holds);
}

TEST(Verdict, broken_bound_reads_well) {
  EXPECT_EQ(describe({"latency.ttft", 0.5, 0.75, "s"}), "ttft 750 ms > 500 ms");
  EXPECT_EQ(describe({"quality.min_top1", 0.9, 0.85, ""}), "min_top1 0.85 < 0.9");
  EXPECT_EQ(describe({"memory.resident", 1 << 30, 1536 << 20, "B"}), "resident 1.50 GiB > 1.00 GiB");
}

// Definition of the frontier, by brute force over the three costs written out as arrays.
TEST(Frontier, equals_brute_force_on_random_sets) {
  Random random(11, "frontier");
  for (int round = 0; round < 2000; ++round) {
    auto candidates = random_candidates(random, {});
    mark_frontier(candidates);
    const auto costs = [](const Candidate& c) {
      return std::array{c.request_seconds, c.quality->mean_kl,
                        static_cast<double>(c.memory->resident_bytes())};
    };
    for (const Candidate& candidate : candidates) {
      bool expected = !candidate.failure;
      for (const Candidate& other : candidates) {
        if (other.failure || !expected) continue;
        const auto a = costs(other), b = costs(candidate);
        int worse = 0, better = 0;
        for (size_t k = 0; k < a.size(); ++k) worse += a[k] > b[k], better += a[k] < b[k];
        if (worse == 0 && better > 0) expected = false;
      }
      EXPECT_EQ(candidate.on_frontier, expected);
    }
  }
}

TEST(Choice, is_cheapest_that_holds_up_to_the_tie_margin) {
  Random random(12, "choice");
  Contract contract;
  contract.quality.max_mean_kl = 0.2;
  for (int round = 0; round < 2000; ++round) {
    const auto candidates = random_candidates(random, contract);
    const auto chosen = choose(candidates, contract.search);
    const bool any = std::ranges::any_of(candidates, [](const Candidate& c) { return c.holds; });
    ASSERT_EQ(chosen.has_value(), any);
    if (!chosen) continue;
    const Candidate& best = candidates[static_cast<size_t>(*chosen)];
    EXPECT_TRUE(best.holds);
    for (const Candidate& other : candidates) {
      if (!other.holds) continue;
      EXPECT_GE(other.request_seconds * (1 + kCostTie), best.request_seconds);
      if (other.request_seconds == best.request_seconds) {
        EXPECT_GE(other.quality->mean_kl, best.quality->mean_kl);
      }
    }
  }
}

TEST(Choice, tie_prefers_quality_and_memory_is_another_cost) {
  Contract contract;
  std::vector<Candidate> candidates = {measured(1.00, 0.3, 50), measured(1.01, 0.1, 60),
                                       measured(1.5, 0.0, 10)};
  for (Candidate& candidate : candidates) judge(contract, candidate);
  EXPECT_EQ(choose(candidates, contract.search), 1);
  contract.search.choose = "memory";
  EXPECT_EQ(choose(candidates, contract.search), 2);
}

TEST(Ladder, steps_get_cheaper_and_keep_the_pressure_bounds) {
  Random random(13, "ladder");
  Contract contract;
  contract.quality.max_mean_kl = 0.1;
  contract.pressure = QualityBounds{.max_mean_kl = 0.2};
  int longest = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto candidates = random_candidates(random, contract);
    const auto chosen = choose(candidates, contract.search);
    if (!chosen) continue;
    const auto ladder = make_ladder(candidates, contract, *chosen);
    ASSERT_EQ(ladder.front(), *chosen);
    longest = std::max(longest, static_cast<int>(ladder.size()));
    for (size_t i = 1; i < ladder.size(); ++i) {
      const Candidate& rung = candidates[static_cast<size_t>(ladder[i])];
      EXPECT_LT(rung.request_seconds, candidates[static_cast<size_t>(ladder[i - 1])].request_seconds);
      EXPECT_LE(rung.quality->mean_kl, 0.2);
    }
  }
  EXPECT_GE(longest, 3);
}

}  // namespace
}  // namespace assay
