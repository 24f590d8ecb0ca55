#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "base/check.h"
#include "engine/softmax_weights.h"

namespace assay {
namespace {

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

// 1 / temperature; where that is infinite, zero times it must still be zero.
float scale_of(float temperature) {
  return std::min(1 / temperature, std::numeric_limits<float>::max());
}

void weigh(std::vector<Candidate>& candidates, float max, float temperature) {
  for (Candidate& candidate : candidates) {
    const std::span<const float> logit(&candidate.logit, 1);
    softmax_weights(logit, max, scale_of(temperature), {&candidate.weight, 1});
  }
}

double total_weight(std::span<const Candidate> candidates) {
  double total = 0;
  for (const Candidate& candidate : candidates) total += static_cast<double>(candidate.weight);
  return total;
}

// Fills workspace.weights with all weights; returns the worst token that top-p leaves.
Candidate weigh_and_cut(std::span<const float> logits, float max, const SamplingParams& params,
                        SamplerWorkspace& workspace) {
  const float scale = scale_of(params.temperature);
  workspace.weights.resize(logits.size());
  const double total = softmax_weights(logits, max, scale, workspace.weights);
  if (params.top_p >= 1)
    return {std::numeric_limits<int32_t>::max(), -std::numeric_limits<float>::infinity(), 0};
  return last_of_nucleus(logits, workspace.weights, max, scale, static_cast<double>(params.top_p) * total,
                         workspace.candidates);
}

// The index i with weights[0] + ... + weights[i - 1] <= position < ... + weights[i], never one of weight
// zero. Whole blocks are skipped by their sums.
size_t index_at(std::span<const float> weights, double position) {
  constexpr size_t kBlock = 512;
  size_t last = 0;  // catches the rounding of the sums
  for (size_t begin = 0; begin < weights.size(); begin += kBlock) {
    const auto block = weights.subspan(begin, std::min(kBlock, weights.size() - begin));
    const double sum = sum_of(block);
    if (sum <= 0) continue;
    if (position >= sum) {
      position -= sum;
      last = begin +
             static_cast<size_t>(std::ranges::find_if(block, [](float w) { return w > 0; }) - block.begin());
      continue;
    }
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] > 0) last = begin + i;
      if ((position -= static_cast<double>(block[i])) < 0) break;
    }
    return last;
  }
  return last;
}

}  // namespace

void select_candidates(std::span<const float> logits, float max, const SamplingParams& params,
                       SamplerWorkspace& workspace) {
  std::vector<Candidate>& candidates = workspace.candidates;
  const auto n_vocab = std::ssize(logits);
  if (params.top_k > 0 && params.top_k < n_vocab) {
    select_largest(logits, params.top_k, candidates);
    weigh(candidates, max, params.temperature);
    const double total = total_weight(candidates);
    if (params.top_p < 1) cut_to_nucleus(candidates, static_cast<double>(params.top_p) * total);
    std::erase_if(candidates, [&](const Candidate& c) { return c.weight < params.min_p; });
    return;
  }
  const Candidate last = weigh_and_cut(logits, max, params, workspace);
  candidates.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const Candidate candidate{static_cast<int32_t>(i), logits[i], workspace.weights[i]};
    if (!better(last, candidate) && candidate.weight >= params.min_p) candidates.push_back(candidate);
  }
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

int32_t Sampler::draw(std::span<const float> logits, float max, SamplerWorkspace& workspace) {
  if (params_.top_k > 0 && params_.top_k < std::ssize(logits)) {
    select_candidates(logits, max, params_, workspace);
    const std::vector<Candidate>& candidates = workspace.candidates;
    double left = random_.uniform() * total_weight(candidates);
    // A weight of zero is never drawn; `last` catches the rounding of the sum.
    int32_t last = candidates.front().token;
    for (const Candidate& candidate : candidates) {
      if (candidate.weight > 0) last = candidate.token;
      if ((left -= static_cast<double>(candidate.weight)) < 0) break;
    }
    return last;
  }
  const Candidate last = weigh_and_cut(logits, max, params_, workspace);
  const std::span weights(workspace.weights);
  if (params_.top_p < 1 || params_.min_p > 0) {
    // Of equal logits the lower tokens are kept: after the last token the cut is one step higher.
    const auto n = std::min(static_cast<size_t>(last.token) + 1, logits.size());
    const float above = std::nextafter(last.logit, std::numeric_limits<float>::infinity());
    clear_weights_below(logits.first(n), last.logit, params_.min_p, weights.first(n));
    clear_weights_below(logits.subspan(n), above, params_.min_p, weights.subspan(n));
  }
  return static_cast<int32_t>(index_at(weights, random_.uniform() * sum_of(weights)));
}

Result<SampledToken> Sampler::sample(std::span<const float> logits, SamplerWorkspace& workspace) {
  const LogitRange range = range_of(logits);
  if (!range.finite) return bad_logits(logits);
  std::span<const float> changed = logits;
  float max = range.max;
  if (changes_logits()) {
    workspace.logits.assign(logits.begin(), logits.end());
    apply_bias_and_penalties(workspace.logits);
    changed = workspace.logits;
    max = range_of(changed).max;
  }
  SampledToken sampled;
  sampled.token = params_.temperature == 0
                      ? static_cast<int32_t>(std::ranges::find(changed, max) - changed.begin())
                      : draw(changed, max, workspace);
  ++generated_[sampled.token];
  if (params_.logprobs || params_.top_logprobs > 0) {
    Logprobs logprobs = logprobs_of(logits, range.max, sampled.token, params_.top_logprobs, workspace);
    sampled.logprob = logprobs.chosen;
    sampled.top = std::move(logprobs.top);
  }
  return sampled;
}

}  // namespace assay
