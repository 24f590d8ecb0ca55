// A JSON Schema document (2020-12; also what OpenAI's strict mode takes) as checked nodes. Every keyword is
// either understood, known to be an annotation, or refused with its path; nothing is ignored.
//
// Understood: type, enum, const, properties, required, additionalProperties, items, prefixItems, minItems,
// maxItems, minLength, maxLength, pattern, format (date, time, date-time, duration, email, hostname, ipv4,
// uuid), minimum, maximum, exclusiveMinimum, exclusiveMaximum, anyOf, allOf, oneOf (of alternatives that
// provably exclude each other), $ref within the document (recursion too), $defs, definitions, true, false.
// Failure: kUnsupported names a keyword outside of this; kInvalidArgument what no schema may hold;
// kResourceExhausted what is too large. `where` is the JSON pointer of the place. Pure. Cost: linear, bounded
// by kMaxNodes; oneOf costs the square of its alternatives.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "grammar/automaton.h"
#include "grammar/code_point_dfa.h"

namespace assay::grammar {

using NodeId = uint32_t;

// "number" is both kinds.
enum SchemaType : uint8_t {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFraction = 8,
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAnyType = 127
};

struct NumberBound {
  double value = 0;
  bool exclusive = false;
};

struct SchemaNode {
  std::string path;    // JSON pointer
  bool never = false;  // `false`
  uint8_t types = kAnyType;
  std::optional<std::vector<boost::json::value>> allowed;  // enum, const
  uint32_t min_length = 0, max_length = kUnbounded;
  std::vector<std::string> patterns;  // format too
  std::optional<NumberBound> minimum, maximum;
  std::vector<NodeId> prefix_items;
  std::optional<NodeId> items;
  uint32_t min_items = 0, max_items = kUnbounded;
  std::vector<std::pair<std::string, NodeId>> properties;
  std::vector<std::string> required;
  std::optional<NodeId> additional;
  std::vector<NodeId> all_of;                // allOf and $ref
  std::vector<std::vector<NodeId>> one_way;  // anyOf and oneOf: one of each list
};

struct Schema {
  static constexpr size_t kMaxNodes = 20'000;
  static constexpr size_t kMaxListed = 20'000;  // values of all enums together

  std::vector<SchemaNode> nodes;                 // the root first
  std::map<std::string, CodePointDfa> patterns;  // of all nodes, compiled

  // Spends of the budget for patterns and comparisons.
  static Result<Schema> parse(const boost::json::value& document, WorkBudget& budget);
};

// Whether values are valid, by JSON Schema's rules (additional properties allowed unless forbidden). Borrows
// the schema; not thread safe. Cost of one question: nodes times values at most; the value's depth bounds the
// recursion.
class ValueMatcher {
 public:
  explicit ValueMatcher(const Schema& schema) : schema_(schema) {}
  bool matches(NodeId node, const boost::json::value& value);
  // Against several at once, without what they include in place by anyOf and the like: those are among
  // `nodes`.
  bool matches_listed(const std::vector<NodeId>& nodes, const boost::json::value& value);

 private:
  bool holds(NodeId id, const boost::json::value& value);
  bool holds_itself(const SchemaNode& node, const boost::json::value& value);
  bool holds_included(const SchemaNode& node, const boost::json::value& value);
  bool string_holds(const SchemaNode& node, std::string_view text);
  bool array_holds(const SchemaNode& node, const boost::json::array& array);
  bool object_holds(const SchemaNode& node, const boost::json::object& object);

  const Schema& schema_;
  std::map<std::pair<NodeId, const boost::json::value*>, bool> known_;
};

// True only when no value can be valid against both. False may mean that it is not known, also because the
// budget is used up.
bool provably_disjoint(const Schema& schema, NodeId a, NodeId b, WorkBudget& budget);

// The pattern of a known format.
std::optional<std::string_view> pattern_of_format(std::string_view format);

// "true", "1.5", "\"a\"", strings spelled as JsonRules does. Not for arrays and objects.
std::string scalar_json(const boost::json::value& value);

}  // namespace assay::grammar
