// Finds the first stop string in a text that arrives in pieces, holding back only what may still become one.
// The match is the one that ends first; of those that end together, the longest. So the result does not
// depend on how the text was cut. Text and stop strings are UTF-8; what is released never ends inside a
// character if the pieces do not. Knuth-Morris-Pratt per stop string. Cost: O(number of stop strings) per
// byte, amortised. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);  // none empty

  // The text that is certain to lie before any stop string. After a match nothing is taken or released any
  // more.
  std::string push(std::string_view text);
  // The end of the text: what was held back, unless a stop string matched.
  std::string finish();

  bool matched() const { return !matched_.empty(); }
  const std::string& stop_text() const { return matched_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<int32_t> fallback;  // [size + 1] longest proper border of each prefix
    int32_t state = 0;              // how much of it the text so far ends with
  };

  std::vector<Pattern> patterns_;
  std::string held_;  // the end of the text that a stop string begins with
  std::string matched_;
};

}  // namespace assay
