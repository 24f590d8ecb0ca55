// JSON Schema to a grammar of the documents that are valid against it.
//
// The grammar allows only valid documents. It leaves out some valid ones, so that a model can be led and no
// document grows without end: properties come in the order of the schema, then additional ones; an object
// whose schema lists properties has no others unless additionalProperties says so; numbers with minimum or
// maximum have no exponent; integers have no fraction; numbers, white space, nesting and the spelling of
// strings are limited as in grammar/json_rules.h.
//
// Failure: as Schema::parse; kInvalidArgument when no document is valid; kResourceExhausted beyond the
// builder's budget or kMaxAlternatives. Pure. Cost: bounded by these, whatever the schema; a usual schema
// takes well under a millisecond (measured in bench/grammar/mask_bench.cpp).
#pragma once

#include <boost/json/value.hpp>

#include "base/error.h"
#include "grammar/automaton.h"
#include "grammar/json_rules.h"

namespace assay::grammar {

// anyOf branches that one value may have, with allOf and $ref multiplied out; and of all values together.
inline constexpr size_t kMaxAlternatives = 2048;
inline constexpr size_t kMaxAllAlternatives = 100'000;

// A rule for the documents of the schema, to be put into a larger grammar.
Result<RuleId> add_json_schema(AutomatonBuilder& builder, JsonRules& rules, const boost::json::value& schema);

Result<Automaton> compile_json_schema(const boost::json::value& schema);
// Any JSON object.
Result<Automaton> compile_json_object();

}  // namespace assay::grammar
