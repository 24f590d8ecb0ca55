// The syntax tree of a pattern (grammar/pattern.h). Internal to the library.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/automaton.h"
#include "grammar/code_point_dfa.h"

namespace assay::grammar {

struct PatternNode {
  enum class Kind { kSet, kSequence, kChoice, kRepeat, kCount };
  Kind kind = Kind::kSequence;
  CodePointSet set;                   // kSet
  std::vector<PatternNode> children;  // kRepeat: one
  uint32_t min = 0, max = 0;          // kRepeat; max may be kUnbounded
};

// One alternative of the whole pattern.
struct PatternBranch {
  bool from_start = false;  // ^
  bool to_end = false;      // $
  PatternNode body;
};

Result<std::vector<PatternBranch>> parse_pattern(std::string_view pattern);

}  // namespace assay::grammar
