// The rules of JSON (RFC 8259) that schemas are put together from, made on demand in one builder.
//
// Narrower than RFC 8259 where a model could otherwise go on for ever or leave what clients can read:
// - white space only after { [ , : and before } ]: nothing, one space, or a line end with up to 40 spaces or
// 16 tabs;
// - numbers have at most 18 digits before the point, 17 after it and 2 in the exponent;
// - objects and arrays lie at most kMaxDepth deep in one another;
// - strings are valid UTF-8 and escapes of surrogates come in pairs.
// Strings that must match something (keys, patterns, lists) are spelled in one way: escapes only for what
// needs them, the short ones where there are any, \u00xx in lower case otherwise.
//
// Ownership: borrows the builder. Not thread safe. Failure: by the builder's budget.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/automaton.h"
#include "grammar/code_point_dfa.h"

namespace assay::grammar {

inline constexpr uint32_t kMaxDepth = 32;
inline constexpr int kMaxIntegerDigits = 18;

class JsonRules {
 public:
  explicit JsonRules(AutomatonBuilder& builder) : builder_(builder) {}

  RuleId space();
  RuleId string();  // any
  RuleId string_of_length(uint32_t min, uint32_t max);
  RuleId string_of(const CodePointDfa& content);
  RuleId number();
  RuleId integer();
  RuleId literal(std::string_view text);  // true, false, null: a rule that spells `text`
  // Any value that lies in `depth` objects and arrays.
  RuleId value(uint32_t depth);
  RuleId object(uint32_t depth);
  RuleId array(uint32_t depth);

  // Pieces for rules of the caller's own.
  StateId after_space(StateId from);
  void add_character(StateId from, StateId to);  // one character inside a string, however it is spelled
  void add_digits(StateId from, StateId to, uint32_t min, uint32_t max);

 private:
  StateId continuation(StateId target, int n_bytes);
  void add_code_points(StateId from, uint32_t low, uint32_t high, StateId to);
  void add_utf8(StateId from, uint32_t low, uint32_t high, StateId to);
  void add_control(StateId from, uint32_t low, uint32_t high, StateId to);
  void add_surrogate_pair(StateId after_u, StateId to);
  StateId add_hex(StateId from, int n_digits, StateId to);
  RuleId one_byte(uint8_t byte);
  RuleId character();
  RuleId new_rule(StateId start);

  AutomatonBuilder& builder_;
  RuleId space_ = kNone, string_ = kNone, number_ = kNone, integer_ = kNone, character_ = kNone;
  std::map<std::string, RuleId, std::less<>> literals_;
  std::map<std::pair<StateId, int>, StateId> continuations_;
  std::map<uint8_t, RuleId> bytes_;
  std::array<RuleId, kMaxDepth + 1> values_ = filled();
  std::array<RuleId, kMaxDepth + 1> objects_ = filled();
  std::array<RuleId, kMaxDepth + 1> arrays_ = filled();

  static constexpr std::array<RuleId, kMaxDepth + 1> filled() {
    std::array<RuleId, kMaxDepth + 1> rules{};
    rules.fill(kNone);
    return rules;
  }
};

// `text` between quotation marks, spelled as string_of() does.
std::string json_spelling(std::string_view text);

}  // namespace assay::grammar
