// From judged candidates to a decision: the frontier, the choice and the ladder.
// Pure functions; thread safe. Cost: O(n^2) in the number of candidates.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "records/plan.h"

namespace assay {

// Costs closer than this share are a tie: medians of a few runs on a shared machine do not tell them apart.
inline constexpr double kCostTie = 0.02;

// Marks the candidates that no other one matches or beats in all of request_seconds, mean KL and resident
// bytes while being better in at least one (Pareto). Candidates without measurements are never on the
// frontier.
void mark_frontier(std::span<Candidate> candidates);

// The cheapest candidate that holds: least request_seconds ("time") or resident bytes ("memory"). Among those
// within kCostTie of the cheapest, the one with the lowest mean KL; then the first. None: nothing holds.
std::optional<int> choose(std::span<const Candidate> candidates, const Search& search);

// The chosen index, then the rungs below: candidates within the pressure bounds (the contract's own quality
// bounds when it has no [pressure] section), each at least kCostTie cheaper than the rung before.
std::vector<int> make_ladder(std::span<const Candidate> candidates, const Contract& contract, int chosen);

}  // namespace assay
