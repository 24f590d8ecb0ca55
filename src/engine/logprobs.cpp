#include "engine/logprobs.h"

#include <algorithm>
#include <cmath>

#include "engine/softmax_weights.h"

namespace assay {

void select_largest(std::span<const float> logits, int64_t n, std::vector<Candidate>& largest) {
  const size_t keep = static_cast<size_t>(std::clamp<int64_t>(n, 0, std::ssize(logits)));
  largest.clear();
  if (keep == 0) return;
  for (size_t i = 0; i < keep; ++i) largest.push_back({static_cast<int32_t>(i), logits[i]});
  std::ranges::make_heap(largest, better);  // the worst kept one at the front
  float worst = largest.front().logit;
  for (size_t i = keep; i < logits.size(); ++i) {
    if (!(logits[i] > worst)) continue;  // an equal logit of a higher id is worse
    std::ranges::pop_heap(largest, better);
    largest.back() = {static_cast<int32_t>(i), logits[i]};
    std::ranges::push_heap(largest, better);
    worst = largest.front().logit;
  }
  std::ranges::sort_heap(largest, better);
}

Logprobs logprobs_of(std::span<const float> logits, float max, int32_t chosen, int n_top,
                     SamplerWorkspace& workspace) {
  workspace.weights.resize(logits.size());
  const double log_sum = std::log(softmax_weights(logits, max, 1, workspace.weights));
  const auto logprob = [&](float logit) {
    return static_cast<float>(static_cast<double>(logit) - static_cast<double>(max) - log_sum);
  };
  Logprobs result{.chosen = logprob(logits[static_cast<size_t>(chosen)]), .top = {}};
  select_largest(logits, n_top, workspace.candidates);
  for (const Candidate& candidate : workspace.candidates)
    result.top.push_back({candidate.token, logprob(candidate.logit)});
  return result;
}

}  // namespace assay
