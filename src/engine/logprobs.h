// Log-probabilities of one distribution: softmax at temperature 1 of the logits. Thread safety: pure, but for
// the workspace. Cost: one pass of exponentials and one selection over the vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/nucleus.h"
#include "engine/sampling.h"

namespace assay {

// Memory that a step reuses; grows to the vocabulary's size and stays.
struct SamplerWorkspace {
  std::vector<float> logits;   // [n_vocab] after bias and penalties
  std::vector<float> weights;  // [n_vocab]
  std::vector<Candidate> candidates;
};

struct Logprobs {
  float chosen = 0;
  std::vector<TokenLogprob> top;  // best first, ties by lowest id
};

// `max` is the largest of the logits, all finite but for negative infinities (LogitRange).
Logprobs logprobs_of(std::span<const float> logits, float max, int32_t chosen, int n_top,
                     SamplerWorkspace& workspace);

// The `n` largest logits, best first, ties by lowest id; weights are left 0. O(n_vocab + n log n log n_vocab)
// on average.
void select_largest(std::span<const float> logits, int64_t n, std::vector<Candidate>& largest);

}  // namespace assay
