#include "engine/softmax_weights.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace assay {
namespace {

constexpr size_t kLanes = 16;  // partial results that break chains of additions and fix their order

// exp(x) for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, exp(r) by its Taylor polynomial of degree 7
// (remainder below 6e-9), and 2^n put together from bits. Adding 1.5 * 2^23 rounds to an integer without a
// call.
inline float exp_of_nonpositive(float x) {
  constexpr float kLog2E = 1.44269504F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F,
                  kRound = 12582912.0F;
  // Both selections by mask: a branch would keep the loop from being vectorised.
  const int32_t in_range = -static_cast<int32_t>(x >= -87.0F);
  const float clamped = std::bit_cast<float>(std::bit_cast<int32_t>(x) & in_range);
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
  const float scale = std::bit_cast<float>((exponent << 23) & in_range);
  return sum * scale;
}

}  // namespace

LogitRange range_of(std::span<const float> logits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Lanes because one running maximum is a chain that no compiler may reorder.
  float highest[kLanes];
  int32_t n_bad[kLanes] = {};
  std::ranges::fill(highest, -kInfinity);
  const auto look = [&](size_t i, size_t lane) {
    const float logit = logits[i];
    n_bad[lane] += logit < kInfinity ? 0 : 1;  // NaN compares false
    highest[lane] = logit > highest[lane] ? logit : highest[lane];
  };
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) look(i + lane, lane);
  for (; i < logits.size(); ++i) look(i, 0);
  LogitRange range;
  range.max = std::ranges::max(highest);
  range.finite = std::ranges::count(n_bad, 0) == std::ssize(n_bad) && range.max > -kInfinity;
  return range;
}

double sum_of(std::span<const float> values) {
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<double>(values[i + lane]);
  for (; i < values.size(); ++i) lanes[0] += static_cast<double>(values[i]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

double softmax_weights(std::span<const float> logits, float max, float scale, std::span<float> weights) {
  CHECK_OP(logits.size(), ==, weights.size());
  for (size_t i = 0; i < logits.size(); ++i) weights[i] = exp_of_nonpositive((logits[i] - max) * scale);
  return sum_of(weights);
}

}  // namespace assay
