// JSON Schema's `pattern` (ECMA-262 regular expressions, Unicode code points) as an automaton of whole
// strings: the regular subset. Groups, classes, . \d \w \s and their opposites, * + ? {m,n} (lazy ones too:
// the language is the same), alternatives; ^ and $ at the ends of the pattern or of its alternatives,
// elsewhere the match may lie anywhere in the string. \d and \w are ASCII, as in ECMA-262. Refused by name:
// look-around, back-references, \b, \p, anchors elsewhere. Pure. Failure: kInvalidArgument (syntax),
// kUnsupported, kResourceExhausted; the error says at which byte. Cost: bounded by kMaxNfaStates and
// CodePointDfa's limits, whatever the pattern.
#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/code_point_dfa.h"

namespace assay::grammar {

inline constexpr size_t kMaxPatternBytes = 4096;
inline constexpr size_t kMaxNfaStates = 20'000;

Result<CodePointDfa> compile_pattern(std::string_view pattern, WorkBudget& budget);

}  // namespace assay::grammar
