#include "engine/nucleus.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace assay {
namespace {

// Bins per unit of x = (max - logit) * scale. Beyond 87 weights are zero; all of that is the last bin.
constexpr float kBinsPerUnit = 16;
constexpr size_t kBins = 88 * 16 + 1;

// Rises as the logit falls, whatever the rounding: subtraction and multiplication are monotone.
size_t bin_of(float logit, float max, float scale) {
  const float x = (max - logit) * scale * kBinsPerUnit;
  return x < static_cast<float>(kBins - 1) ? static_cast<size_t>(x) : kBins - 1;
}

}  // namespace

void cut_to_nucleus(std::vector<Candidate>& candidates, double target, double before) {
  constexpr ptrdiff_t kFew = 32;
  auto low = candidates.begin(),
       high = candidates.end();  // everything before `low` is in, from `high` on is out
  double sum = before;           // of what is in
  while (high - low > kFew) {
    // The median of three as the pivot, in the first place while the others are parted.
    const auto middle = low + (high - low) / 2;
    if (better(*low, *middle)) std::iter_swap(low, middle);
    if (better(*(high - 1), *low)) std::iter_swap(low, high - 1);
    if (better(*middle, *low)) std::iter_swap(low, middle);
    const Candidate pivot = *low;
    auto end = std::partition(low + 1, high, [&](const Candidate& c) { return better(c, pivot); });
    std::iter_swap(low, --end);
    double sum_better = 0;
    for (auto it = low; it != end; ++it) sum_better += static_cast<double>(it->weight);
    if (sum + sum_better >= target) {
      high = end;
      continue;
    }
    sum += sum_better + static_cast<double>(pivot.weight);
    low = end + 1;
    if (sum >= target) high = low;
  }
  std::sort(low, high, better);
  while (low != high && sum < target) sum += static_cast<double>((low++)->weight);
  candidates.erase(low, candidates.end());
}

Candidate last_of_nucleus(std::span<const float> logits, std::span<const float> weights, float max, float scale,
                          double target, std::vector<Candidate>& scratch) {
  CHECK_OP(logits.size(), ==, weights.size());
  // Two sets of sums, because neighbours in one bin would wait for each other.
  std::array<double, kBins> even{}, odd{};
  size_t i = 0;
  for (; i + 2 <= logits.size(); i += 2) {
    even[bin_of(logits[i], max, scale)] += static_cast<double>(weights[i]);
    odd[bin_of(logits[i + 1], max, scale)] += static_cast<double>(weights[i + 1]);
  }
  if (i < logits.size()) even[bin_of(logits[i], max, scale)] += static_cast<double>(weights[i]);
  double before = 0;
  size_t bin = 0;
  // The last bin that holds anything catches the rounding of the sums.
  size_t last_filled = 0;
  for (size_t b = 0; b < kBins; ++b)
    if (even[b] + odd[b] > 0) last_filled = b;
  while (bin < last_filled && before + even[bin] + odd[bin] < target) {
    before += even[bin] + odd[bin];
    ++bin;
  }
  scratch.clear();
  for (size_t k = 0; k < logits.size(); ++k) {
    if (bin_of(logits[k], max, scale) == bin) scratch.push_back({static_cast<int32_t>(k), logits[k], weights[k]});
  }
  cut_to_nucleus(scratch, target, before);
  CHECK(!scratch.empty());
  return *std::ranges::max_element(scratch, better);
}

}  // namespace assay
