#include "engine/softmax_weights.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

#define ASSAY_INLINE [[gnu::always_inline]] inline

namespace assay {
namespace {

constexpr size_t kLanes = 16;  // partial results that break chains of additions and fix their order
constexpr size_t kChunk = 64;  // a constant count, so that compilers vectorise without an -O3

// exp(x) for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, exp(r) by its Taylor polynomial of degree 7
// (remainder below 6e-9), and 2^n put together from bits. Adding 1.5 * 2^23 rounds to an integer without a
// call.
ASSAY_INLINE float exp_of_nonpositive(float x) {
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


// Bodies are compiled once per instruction set. All give the same bits: no lane touches another, and products
// are not fused with additions.
ASSAY_INLINE LogitRange range_body(const float* logits, size_t n) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Lanes because one running maximum is a chain that no compiler may reorder.
  float highest[kLanes];
  int32_t n_bad[kLanes] = {};
  std::ranges::fill(highest, -kInfinity);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = logits[i + lane];
      n_bad[lane] += logit < kInfinity ? 0 : 1;  // NaN compares false
      highest[lane] = logit > highest[lane] ? logit : highest[lane];
    }
  }
  for (; i < n; ++i) {
    n_bad[0] += logits[i] < kInfinity ? 0 : 1;
    highest[0] = logits[i] > highest[0] ? logits[i] : highest[0];
  }
  LogitRange range;
  range.max = std::ranges::max(highest);
  range.finite = std::ranges::count(n_bad, 0) == std::ssize(n_bad) && range.max > -kInfinity;
  return range;
}

ASSAY_INLINE double sum_body(const float* values, size_t n) {
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<double>(values[i + lane]);
  for (; i < n; ++i) lanes[0] += static_cast<double>(values[i]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

ASSAY_INLINE void weights_body(const float* __restrict logits, size_t n, float max, float scale,
                               float* __restrict weights) {
  size_t i = 0;
  for (; i + kChunk <= n; i += kChunk)
    for (size_t k = 0; k < kChunk; ++k) weights[i + k] = exp_of_nonpositive((logits[i + k] - max) * scale);
  for (; i < n; ++i) weights[i] = exp_of_nonpositive((logits[i] - max) * scale);
}

// Weights of tokens that are not kept become zero: of those below `least` (of logit) or of less than
// least_weight. By masks, as above.
ASSAY_INLINE void clear_body(const float* __restrict logits, size_t n, float least, float least_weight,
                             float* __restrict weights) {
  const auto keep = [&](size_t i) {
    const int32_t mask =
        -static_cast<int32_t>(logits[i] >= least) & -static_cast<int32_t>(weights[i] >= least_weight);
    weights[i] = std::bit_cast<float>(std::bit_cast<int32_t>(weights[i]) & mask);
  };
  size_t i = 0;
  for (; i + kChunk <= n; i += kChunk)
    for (size_t k = 0; k < kChunk; ++k) keep(i + k);
  for (; i < n; ++i) keep(i);
}

struct Functions {
  LogitRange (*range)(const float*, size_t);
  double (*sum)(const float*, size_t);
  void (*weights)(const float*, size_t, float, float, float*);
  void (*clear)(const float*, size_t, float, float, float*);
};

#define ASSAY_FUNCTIONS(suffix, attribute)                                                            \
  attribute LogitRange range_##suffix(const float* x, size_t n) { return range_body(x, n); }          \
  attribute double sum_##suffix(const float* x, size_t n) { return sum_body(x, n); }                  \
  attribute void weights_##suffix(const float* x, size_t n, float max, float scale, float* w) {       \
    weights_body(x, n, max, scale, w);                                                                \
  }                                                                                                   \
  attribute void clear_##suffix(const float* x, size_t n, float least, float least_weight, float* w) { \
    clear_body(x, n, least, least_weight, w);                                                         \
  }                                                                                                   \
  constexpr Functions k_##suffix{range_##suffix, sum_##suffix, weights_##suffix, clear_##suffix}

ASSAY_FUNCTIONS(portable, );
#if defined(__x86_64__)
ASSAY_FUNCTIONS(avx2, __attribute__((target("avx2"))));
ASSAY_FUNCTIONS(avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))));

const Functions& functions() {
  static const Functions& chosen = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                           __builtin_cpu_supports("avx512dq") &&
                                           __builtin_cpu_supports("avx512vl")
                                       ? k_avx512
                                   : __builtin_cpu_supports("avx2") ? k_avx2
                                                                    : k_portable;
  return chosen;
}
#else
const Functions& functions() {
  return k_portable;
}
#endif

}  // namespace

LogitRange range_of(std::span<const float> logits) {
  return functions().range(logits.data(), logits.size());
}

double sum_of(std::span<const float> values) {
  return functions().sum(values.data(), values.size());
}

double softmax_weights(std::span<const float> logits, float max, float scale, std::span<float> weights) {
  CHECK_OP(logits.size(), ==, weights.size());
  functions().weights(logits.data(), logits.size(), max, scale, weights.data());
  return sum_of(weights);
}

void clear_weights_below(std::span<const float> logits, float least, float least_weight,
                         std::span<float> weights) {
  CHECK_OP(logits.size(), ==, weights.size());
  functions().clear(logits.data(), logits.size(), least, least_weight, weights.data());
}

}  // namespace assay
