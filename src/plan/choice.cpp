#include "plan/choice.h"

#include <algorithm>
#include <cmath>

#include "plan/verdict.h"

namespace assay {
namespace {

bool is_measured(const Candidate& candidate) {
  return !candidate.failure && candidate.quality && candidate.speed && candidate.memory &&
         std::isfinite(candidate.request_seconds) && std::isfinite(candidate.quality->mean_kl);
}

bool dominates(const Candidate& a, const Candidate& b) {
  const double a_bytes = static_cast<double>(a.memory->resident_bytes());
  const double b_bytes = static_cast<double>(b.memory->resident_bytes());
  const bool no_worse = a.request_seconds <= b.request_seconds && a.quality->mean_kl <= b.quality->mean_kl &&
                        a_bytes <= b_bytes;
  const bool better =
      a.request_seconds < b.request_seconds || a.quality->mean_kl < b.quality->mean_kl || a_bytes < b_bytes;
  return no_worse && better;
}

double cost(const Candidate& candidate, const Search& search) {
  return search.choose == "memory" ? static_cast<double>(candidate.memory->resident_bytes())
                                   : candidate.request_seconds;
}

}  // namespace

void mark_frontier(std::span<Candidate> candidates) {
  for (Candidate& candidate : candidates) {
    candidate.on_frontier =
        is_measured(candidate) && std::ranges::none_of(candidates, [&](const Candidate& other) {
          return is_measured(other) && dominates(other, candidate);
        });
  }
}

std::optional<int> choose(std::span<const Candidate> candidates, const Search& search) {
  double cheapest = INFINITY;
  for (const Candidate& candidate : candidates) {
    if (candidate.holds && is_measured(candidate)) cheapest = std::min(cheapest, cost(candidate, search));
  }
  std::optional<int> best;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (!candidate.holds || !is_measured(candidate) || cost(candidate, search) > cheapest * (1 + kCostTie))
      continue;
    if (!best || candidate.quality->mean_kl < candidates[static_cast<size_t>(*best)].quality->mean_kl) {
      best = static_cast<int>(i);
    }
  }
  return best;
}

std::vector<int> make_ladder(std::span<const Candidate> candidates, const Contract& contract, int chosen) {
  const QualityBounds& bounds = contract.pressure ? *contract.pressure : contract.quality;
  std::vector<int> below;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (static_cast<int>(i) == chosen || !is_measured(candidate)) continue;
    if (broken_quality(bounds, *candidate.quality, "pressure").empty()) below.push_back(static_cast<int>(i));
  }
  std::ranges::stable_sort(below, [&](int a, int b) {
    return cost(candidates[static_cast<size_t>(a)], contract.search) >
           cost(candidates[static_cast<size_t>(b)], contract.search);
  });
  std::vector<int> ladder = {chosen};
  for (const int index : below) {
    const double last = cost(candidates[static_cast<size_t>(ladder.back())], contract.search);
    if (cost(candidates[static_cast<size_t>(index)], contract.search) < last * (1 - kCostTie)) {
      ladder.push_back(index);
    }
  }
  return ladder;
}

}  // namespace assay
