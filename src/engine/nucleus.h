// Where top-p cuts a vocabulary, found without sorting it: the weights are summed in bins by logit, and only
// the bin that holds the cut is looked at token by token. Pure; thread safe. Cost: one pass over the
// vocabulary, about 2 ns a token, and the selection inside one bin.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay {

struct Candidate {
  int32_t token = 0;
  float logit = 0;
  float weight = 0;  // exp((logit - max) / temperature)
};

// Higher logits first, equal ones by lowest token.
inline bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

// Cuts to the smallest set of best candidates that holds `target` of the weight, `before` of which others
// hold already: quickselect by weight, so that the set is found without being sorted. O(n) on average. Keeps
// at least one unless `before` reaches the target.
void cut_to_nucleus(std::vector<Candidate>& candidates, double target, double before = 0);

// The worst token of the smallest set of best tokens that holds `target` > 0 of the weight. weights are those
// of softmax_weights(logits, max, scale). `scratch` is memory to reuse.
Candidate last_of_nucleus(std::span<const float> logits, std::span<const float> weights, float max, float scale,
                          double target, std::vector<Candidate>& scratch);

}  // namespace assay
