#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "base/check.h"
#include "engine/softmax_weights.h"

namespace assay {
namespace {

bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

uint64_t seed_or_system(const std::optional<uint64_t>& seed) {
  if (seed) return *seed;
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

std::unexpected<Error> bad_logits(std::span<const float> logits) {
  const auto bad = std::ranges::find_if(logits, [](float x) { return !(x < HUGE_VALF); });
  if (bad == logits.end())
    return fail(ErrorCode::kCorrupt, "logits", "all {} are negative infinity, so no token can be chosen",
                logits.size());
  return fail(ErrorCode::kCorrupt, "logits",
              "found {} at token {} of {}: the model overflows at this precision or its weights are damaged",
              *bad, bad - logits.begin(), logits.size());
}

// Best-first candidates with their weights, cut after the smallest prefix that holds `share` of `total`, and
// before the first weight below `min_weight`. Sorts no more than it reads.
void cut_tail(std::vector<Candidate>& candidates, bool sorted, double total, float share, float min_weight) {
  size_t n_sorted = sorted ? candidates.size() : 0;
  double sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (i == n_sorted) {
      n_sorted = std::min(candidates.size(), std::max<size_t>(64, n_sorted * 4));
      std::partial_sort(candidates.begin() + static_cast<ptrdiff_t>(i),
                        candidates.begin() + static_cast<ptrdiff_t>(n_sorted), candidates.end(), better);
    }
    if (candidates[i].weight < min_weight) return candidates.resize(i);
    sum += static_cast<double>(candidates[i].weight);
    if (sum >= share * total) return candidates.resize(i + 1);
  }
}

void cut_after_top_k(const SamplingParams& params, float max, std::vector<Candidate>& candidates,
                     std::vector<float>& scratch) {
  scratch.resize(2 * candidates.size());
  const std::span logits(scratch.data(), candidates.size());
  const std::span weights(scratch.data() + candidates.size(), candidates.size());
  std::ranges::transform(candidates, logits.begin(), &Candidate::logit);
  const double total = softmax_weights(logits, max, 1 / params.temperature, weights);
  for (size_t i = 0; i < candidates.size(); ++i) candidates[i].weight = weights[i];
  cut_tail(candidates, true, total, params.top_p < 1 ? params.top_p : 2.0F, params.min_p);
}

}  // namespace

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

void select_candidates(std::span<const float> logits, const SamplingParams& params,
                       SamplerWorkspace& workspace) {
  std::vector<Candidate>& candidates = workspace.candidates;
  const float max = range_of(logits).max;
  const auto n_vocab = std::ssize(logits);
  if (params.top_k > 0 && params.top_k < n_vocab) {
    select_largest(logits, params.top_k, candidates);
    return cut_after_top_k(params, max, candidates, workspace.weights);
  }
  workspace.weights.resize(logits.size());
  const double total = softmax_weights(logits, max, 1 / params.temperature, workspace.weights);
  // All tokens below (1 - top_p) / n_vocab together hold less than 1 - top_p: none of them is in the nucleus.
  // Half of that leaves room for rounding.
  const double nucleus_floor =
      params.top_p < 1 ? 0.5 * (1.0 - params.top_p) / static_cast<double>(n_vocab) : 0;
  const float floor = std::max(params.min_p, static_cast<float>(nucleus_floor * total));
  candidates.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const float weight = workspace.weights[i];
    if (weight >= floor) candidates.push_back({static_cast<int32_t>(i), logits[i], weight});
  }
  if (params.top_p < 1) cut_tail(candidates, false, total, params.top_p, params.min_p);
}

Sampler::Sampler(SamplingParams params, std::span<const int32_t> prompt)
    : params_(std::move(params)), random_(seed_or_system(params_.seed), "sampler") {
  if (params_.repetition_penalty == 1.0F) return;
  prompt_.assign(prompt.begin(), prompt.end());
  std::ranges::sort(prompt_);
  prompt_.erase(std::ranges::unique(prompt_).begin(), prompt_.end());
}

bool Sampler::changes_logits() const {
  return !params_.logit_bias.empty() || params_.presence_penalty != 0 || params_.frequency_penalty != 0 ||
         params_.repetition_penalty != 1;
}

void Sampler::apply_bias_and_penalties(std::span<float> logits) const {
  const auto at = [&](int32_t token) -> float& { return logits[static_cast<size_t>(token)]; };
  const auto repeat = [&](int32_t token) {
    float& logit = at(token);
    logit = logit > 0 ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
  };
  for (const auto& [token, bias] : params_.logit_bias) at(token) += bias;
  for (const int32_t token : prompt_) repeat(token);
  for (const auto& [token, count] : generated_) {
    if (params_.repetition_penalty != 1 && !std::ranges::binary_search(prompt_, token)) repeat(token);
    at(token) -= params_.presence_penalty + params_.frequency_penalty * static_cast<float>(count);
  }
}

int32_t Sampler::draw(std::span<const float> logits, SamplerWorkspace& workspace) {
  const bool cut =
      (params_.top_k > 0 && params_.top_k < std::ssize(logits)) || params_.top_p < 1 || params_.min_p > 0;
  // A weight of zero is never drawn; `last` catches the rounding of the sum.
  int32_t last = 0;
  if (cut) {
    select_candidates(logits, params_, workspace);
    double total = 0;
    for (const Candidate& candidate : workspace.candidates) total += static_cast<double>(candidate.weight);
    double left = random_.uniform() * total;
    for (const Candidate& candidate : workspace.candidates) {
      if (candidate.weight > 0) last = candidate.token;
      if ((left -= static_cast<double>(candidate.weight)) < 0) return candidate.token;
    }
    return last;
  }
  workspace.weights.resize(logits.size());
  const double total =
      softmax_weights(logits, range_of(logits).max, 1 / params_.temperature, workspace.weights);
  double left = random_.uniform() * total;
  for (size_t i = 0; i < workspace.weights.size(); ++i) {
    const float weight = workspace.weights[i];
    if (weight > 0) last = static_cast<int32_t>(i);
    if ((left -= static_cast<double>(weight)) < 0) return static_cast<int32_t>(i);
  }
  return last;
}

Result<SampledToken> Sampler::sample(std::span<const float> logits, SamplerWorkspace& workspace) {
  const LogitRange range = range_of(logits);
  if (!range.finite) return bad_logits(logits);
  std::span<const float> changed = logits;
  if (changes_logits()) {
    workspace.logits.assign(logits.begin(), logits.end());
    apply_bias_and_penalties(workspace.logits);
    changed = workspace.logits;
  }
  SampledToken sampled;
  sampled.token = params_.temperature == 0
                      ? static_cast<int32_t>(std::ranges::max_element(changed) - changed.begin())
                      : draw(changed, workspace);
  ++generated_[sampled.token];
  if (params_.logprobs || params_.top_logprobs > 0) report(logits, range.max, sampled, workspace);
  return sampled;
}

void Sampler::report(std::span<const float> logits, float max, SampledToken& sampled,
                     SamplerWorkspace& workspace) const {
  workspace.weights.resize(logits.size());
  const double log_sum = std::log(softmax_weights(logits, max, 1, workspace.weights));
  const auto logprob = [&](float logit) {
    return static_cast<float>(static_cast<double>(logit) - static_cast<double>(max) - log_sum);
  };
  sampled.logprob = logprob(logits[static_cast<size_t>(sampled.token)]);
  select_largest(logits, params_.top_logprobs, workspace.candidates);
  for (const Candidate& candidate : workspace.candidates)
    sampled.top.push_back({candidate.token, logprob(candidate.logit)});
}

}  // namespace assay
