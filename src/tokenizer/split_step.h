// One step of a pre-tokenizer: isolates the matches of one pattern inside a piece of text.
// Thread safety: split() may run in parallel. Failure: make_split_step() only.
// Cost: linear in the text for the patterns in use; a match that exceeds its limits leaves the rest of the
// piece whole.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace assay::tokenizer_internal {

class SplitStep {
 public:
  virtual ~SplitStep() = default;
  // Appends the ends of the pieces of text[begin, end), which is valid UTF-8 and not empty; the last one is
  // `end`. The pattern does not see what lies outside.
  virtual void split(std::string_view text, size_t begin, size_t end, std::vector<size_t>& ends) const = 0;
};

// Patterns of real files that a backtracking engine needs quadratic time for; code does the same in
// linear time. Decimal digits in groups of three counted from the right, 1|234|567, unless a word goes on
// after them:
inline constexpr std::string_view kDigitGroups = R"(\d{1,3}(?=(?:\d{3})*\b))";
// Cuts before each group of three, whatever comes after:
inline constexpr std::string_view kDigitCuts = R"((?=(\d{3})+(?!\d)))";
// Pieces that are white space without line ends, cut into powers of two from the left, the largest first:
inline constexpr std::string_view kSpaceHalvings =
    R"(\s{512}|\s{256}|\s{128}|\s{64}|\s{32}|\s{16}|\s{8}|\s{4}|\s{1,2})";

// `pattern` as in tokenizer.json. Syntax errors are kCorrupt, set operations kUnsupported.
Result<std::unique_ptr<SplitStep>> make_split_step(std::string_view pattern);

}  // namespace assay::tokenizer_internal
