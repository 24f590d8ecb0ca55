#include "quality/divergence.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace assay {
namespace {

constexpr int kMaxTopK = 64;

float largest(std::span<const float> values) {
  float best = values[0];
  for (const float value : values) best = value > best ? value : best;
  return best;
}

bool all_finite(std::span<const float> values) {
  // x * 0 is 0 for finite x and NaN otherwise.
  float sum = 0;
  for (const float value : values) sum += value * 0.0F;
  return sum == 0.0F;
}

// The ids of the k largest values, best first; ties go to the lowest id.
struct TopK {
  std::array<int32_t, kMaxTopK> ids{};
  std::array<float, kMaxTopK> values{};
  int n = 0;

  TopK(std::span<const float> logits, int k) {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (n == k && !(logits[i] > values[static_cast<size_t>(n - 1)])) continue;
      int at = n < k ? n++ : n - 1;
      for (; at > 0 && logits[i] > values[static_cast<size_t>(at - 1)]; --at) {
        values[static_cast<size_t>(at)] = values[static_cast<size_t>(at - 1)];
        ids[static_cast<size_t>(at)] = ids[static_cast<size_t>(at - 1)];
      }
      values[static_cast<size_t>(at)] = logits[i];
      ids[static_cast<size_t>(at)] = static_cast<int32_t>(i);
    }
  }

  bool contains(int32_t id) const { return std::find(ids.begin(), ids.begin() + n, id) != ids.begin() + n; }
};

}  // namespace

Divergence compare_logits(std::span<const float> reference, std::span<const float> candidate, int32_t next,
                          int top_k) {
  CHECK(!reference.empty() && reference.size() == candidate.size());
  CHECK(next >= 0 && static_cast<size_t>(next) < reference.size());
  Divergence result;
  if (!all_finite(candidate)) {
    result.finite = false;
    return result;
  }
  const float reference_max = largest(reference);
  const float candidate_max = largest(candidate);
  double reference_sum = 0, candidate_sum = 0, weighted = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double p = std::exp(reference[i] - reference_max);
    reference_sum += p;
    candidate_sum += static_cast<double>(std::exp(candidate[i] - candidate_max));
    weighted += p * (static_cast<double>(reference[i]) - static_cast<double>(candidate[i]));
  }
  const double reference_lse = static_cast<double>(reference_max) + std::log(reference_sum);
  const double candidate_lse = static_cast<double>(candidate_max) + std::log(candidate_sum);
  result.kl = weighted / reference_sum - (reference_lse - candidate_lse);
  result.reference_nll = reference_lse - static_cast<double>(reference[static_cast<size_t>(next)]);
  result.candidate_nll = candidate_lse - static_cast<double>(candidate[static_cast<size_t>(next)]);

  const int k = std::min({top_k, kMaxTopK, static_cast<int>(reference.size())});
  const TopK best_reference(reference, std::max(k, 1));
  const TopK best_candidate(candidate, std::max(k, 1));
  result.same_top = best_reference.ids[0] == best_candidate.ids[0];
  int shared = 0;
  for (int i = 0; i < best_reference.n; ++i) {
    shared += best_candidate.contains(best_reference.ids[static_cast<size_t>(i)]);
  }
  result.top_k_overlap = static_cast<double>(shared) / best_reference.n;
  return result;
}

double negative_log_likelihood(std::span<const float> logits, int32_t next) {
  const float best = largest(logits);
  double sum = 0;
  for (const float logit : logits) sum += static_cast<double>(std::exp(logit - best));
  return static_cast<double>(best) + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(next)]);
}

}  // namespace assay
