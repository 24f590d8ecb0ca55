#include "engine/softmax_weights.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace assay {
namespace {

// exp(x) for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, exp(r) by its Taylor polynomial of degree 7
// (remainder below 6e-9), and 2^n put together from bits. Adding 1.5 * 2^23 rounds to an integer without a
// call.
inline float exp_of_nonpositive(float x) {
  constexpr float kLog2E = 1.44269504F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F,
                  kRound = 12582912.0F;
  const float clamped = x < -87.0F ? -87.0F : x;
  const float shifted = clamped * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  float sum = 1.0F / 5040;
  sum = sum * r + 1.0F / 720;
  sum = sum * r + 1.0F / 120;
  sum = sum * r + 1.0F / 24;
  sum = sum * r + 1.0F / 6;
  sum = sum * r + 0.5F;
  sum = sum * r + 1.0F;
  sum = sum * r + 1.0F;
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound) + 127;
  const float scale = std::bit_cast<float>(exponent << 23);
  return x < -87.0F ? 0.0F : sum * scale;
}

}  // namespace

LogitRange range_of(std::span<const float> logits) {
  LogitRange range{.max = -std::numeric_limits<float>::infinity()};
  int32_t n_bad = 0;
  for (const float logit : logits) {
    n_bad += !(logit < std::numeric_limits<float>::infinity());  // NaN compares false
    range.max = logit > range.max ? logit : range.max;
  }
  range.finite = n_bad == 0 && range.max > -std::numeric_limits<float>::infinity();
  return range;
}

double softmax_weights(std::span<const float> logits, float max, float scale, std::span<float> weights) {
  CHECK_OP(logits.size(), ==, weights.size());
  const size_t n = logits.size();
  for (size_t i = 0; i < n; ++i) weights[i] = exp_of_nonpositive((logits[i] - max) * scale);
  // Eight partial sums break the chain of additions and fix the order.
  constexpr size_t kLanes = 8;
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<double>(weights[i + lane]);
  for (size_t lane = 0; i < n; ++i, ++lane) lanes[lane] += static_cast<double>(weights[i]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace assay
