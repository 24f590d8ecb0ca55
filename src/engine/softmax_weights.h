// exp(x - max) of a whole vocabulary, and its sum: the hot loops of sampling. They vectorise because the
// exponential is a polynomial (a call of std::exp per token costs ten times as much), at the widest that the
// CPU has, with the same bits at every width. Pure; thread safe.
#pragma once

#include <cstdint>
#include <span>

namespace assay {

struct LogitRange {
  float max = 0;
  bool finite = false;  // no NaN and no positive infinity; at least one above negative infinity
};
LogitRange range_of(std::span<const float> logits);

// weights[i] = exp((logits[i] - max) * scale), relative error below 3e-7 (underflow to 0 below exp(-87)).
// max is the largest logit, so that weights lie in [0, 1]. Returns the sum, added up in double in one fixed
// order.
double softmax_weights(std::span<const float> logits, float max, float scale, std::span<float> weights);

// Weights become zero where the logit is below `least` or the weight below `least_weight`.
void clear_weights_below(std::span<const float> logits, float least, float least_weight,
                         std::span<float> weights);

// In double, in one fixed order.
double sum_of(std::span<const float> values);

}  // namespace assay
