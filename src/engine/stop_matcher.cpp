#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace assay {
namespace {

std::vector<int32_t> borders_of(std::string_view text) {
  std::vector<int32_t> border(text.size() + 1, 0);
  for (size_t i = 1; i < text.size(); ++i) {
    int32_t k = border[i];
    while (k > 0 && text[static_cast<size_t>(k)] != text[i]) k = border[static_cast<size_t>(k)];
    border[i + 1] = text[static_cast<size_t>(k)] == text[i] ? k + 1 : 0;
  }
  return border;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& stop : stops) {
    CHECK(!stop.empty());
    std::vector<int32_t> fallback = borders_of(stop);
    patterns_.push_back({std::move(stop), std::move(fallback)});
  }
  // So that the first complete one is the longest.
  std::ranges::stable_sort(patterns_, std::greater{},
                           [](const Pattern& pattern) { return pattern.text.size(); });
}

std::string StopMatcher::push(std::string_view text) {
  if (matched()) return {};
  for (const char byte : text) {
    held_.push_back(byte);
    for (Pattern& pattern : patterns_) {
      int32_t& state = pattern.state;
      while (state > 0 && pattern.text[static_cast<size_t>(state)] != byte)
        state = pattern.fallback[static_cast<size_t>(state)];
      if (pattern.text[static_cast<size_t>(state)] == byte) ++state;
      if (std::cmp_less(state, pattern.text.size())) continue;
      matched_ = pattern.text;
      held_.resize(held_.size() - matched_.size());
      return std::exchange(held_, {});
    }
  }
  int32_t keep = 0;
  for (const Pattern& pattern : patterns_) keep = std::max(keep, pattern.state);
  const size_t n_released = held_.size() - static_cast<size_t>(keep);
  std::string released = held_.substr(0, n_released);
  held_.erase(0, n_released);
  return released;
}

std::string StopMatcher::finish() {
  return std::exchange(held_, {});
}

}  // namespace assay
