// Deterministic automata over Unicode code points (surrogates excluded): what patterns, lengths and lists of
// strings have in common, so that they can be intersected and subtracted. Every state can be finished, except
// the start of the empty language. Values; pure. Failure: kResourceExhausted beyond kMaxStates states or when
// a work budget is used up.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace assay::grammar {

inline constexpr uint32_t kLastCodePoint = 0x10FFFF;

// Steps that may still be taken, shared by all that one schema makes necessary: time is bounded whatever is
// asked.
class WorkBudget {
 public:
  static constexpr size_t kDefault = 4'000'000;

  explicit WorkBudget(size_t steps = kDefault) : left_(steps) {}
  void spend(size_t steps) { left_ -= steps < left_ ? steps : left_; }
  bool exhausted() const { return left_ == 0; }

 private:
  size_t left_;
};

struct CodePointRange {
  uint32_t low = 0;
  uint32_t high = 0;  // inclusive
  friend bool operator==(const CodePointRange&, const CodePointRange&) = default;
};

// Sorted, disjoint, without surrogates.
using CodePointSet = std::vector<CodePointRange>;
CodePointSet normalised(CodePointSet set);
CodePointSet complement(const CodePointSet& set);
CodePointSet all_code_points();

class CodePointDfa {
 public:
  static constexpr size_t kMaxStates = 8192;

  struct Edge {
    uint32_t low = 0, high = 0;  // inclusive
    uint32_t target = 0;
  };
  struct State {
    std::vector<Edge> edges;  // sorted, disjoint
    bool final = false;
  };

  static CodePointDfa everything();
  static Result<CodePointDfa> of_texts(std::span<const std::string> texts);  // valid UTF-8
  static Result<CodePointDfa> of_length(uint32_t min, uint32_t max);  // in code points; max may be kUnbounded
  // Of a trimmed or untrimmed list of states whose start is the first.
  static CodePointDfa of_states(std::vector<State> states);

  bool empty() const;  // matches nothing
  bool matches(std::string_view utf8) const;
  const std::vector<State>& states() const { return states_; }  // the start first

 private:
  std::vector<State> states_;
};

Result<CodePointDfa> intersect(const CodePointDfa& a, const CodePointDfa& b, WorkBudget& budget);
Result<CodePointDfa> subtract(const CodePointDfa& a, const CodePointDfa& b, WorkBudget& budget);

// The code points of valid UTF-8; U+FFFD for what is not.
std::u32string to_code_points(std::string_view utf8);

}  // namespace assay::grammar
