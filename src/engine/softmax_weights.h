// exp(x - max) of a whole vocabulary, and its sum: the hot loop of sampling. Vectorises on any instruction
// set because the exponential is a polynomial (a call of std::exp per token costs ten times as much). Pure;
// thread safe.
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

// In double, in one fixed order.
double sum_of(std::span<const float> values);

}  // namespace assay
