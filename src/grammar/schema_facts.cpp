// What can be said about values and schemas without a grammar: validity, disjointness, formats.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <set>
#include <utility>

#include "base/check.h"
#include "grammar/json_rules.h"
#include "grammar/pattern.h"
#include "grammar/schema.h"

namespace assay::grammar {
namespace {

namespace json = boost::json;

uint8_t type_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return kNull;
    case json::kind::bool_:
      return kBoolean;
    case json::kind::int64:
    case json::kind::uint64:
      return kInteger;
    case json::kind::double_:
      return value.get_double() == std::floor(value.get_double()) ? kInteger : kFraction;
    case json::kind::string:
      return kString;
    case json::kind::array:
      return kArray;
    case json::kind::object:
      return kObject;
  }
  return 0;
}

bool same(const json::value& a, const json::value& b) {
  // Integers exactly; 1 and 1.0 are one number.
  if (a.is_number() && b.is_number() && (a.is_double() || b.is_double()))
    return a.to_number<double>() == b.to_number<double>();
  return a == b;
}

bool number_matches(const SchemaNode& node, double value) {
  if (node.minimum &&
      (value < node.minimum->value || (node.minimum->exclusive && value == node.minimum->value)))
    return false;
  return !node.maximum ||
         (value <= node.maximum->value && !(node.maximum->exclusive && value == node.maximum->value));
}

// What a node and all that it includes in place say together.
struct Facts {
  uint8_t types = kAnyType;
  bool never = false;
  std::vector<const SchemaNode*> nodes;
};

Facts facts_of(const Schema& schema, NodeId id) {
  Facts facts;
  std::vector<NodeId> work{id};
  std::set<NodeId> seen;
  while (!work.empty()) {
    const NodeId next = work.back();
    work.pop_back();
    if (!seen.insert(next).second) continue;
    const SchemaNode& node = schema.nodes[next];
    facts.types &= node.types;
    facts.never |= node.never;
    facts.nodes.push_back(&node);
    work.insert(work.end(), node.all_of.begin(), node.all_of.end());
  }
  return facts;
}

class Disjointness {
 public:
  Disjointness(const Schema& schema, WorkBudget& budget)
      : schema_(schema), values_(schema), budget_(budget) {}

  bool run(NodeId a, NodeId b, int depth = 0) {
    if (depth > 8 || budget_.exhausted()) return false;
    const Facts x = facts_of(schema_, a), y = facts_of(schema_, b);
    budget_.spend(10 * (x.nodes.size() + y.nodes.size()));
    if (x.never || y.never || (x.types & y.types) == 0) return true;
    if (listed_apart(x, b) || listed_apart(y, a)) return true;
    for (const auto& [one, other] : {std::pair{&x, b}, std::pair{&y, a}})
      for (const SchemaNode* node : one->nodes)
        for (const std::vector<NodeId>& list : node->one_way)
          if (std::ranges::all_of(list, [&](NodeId member) { return run(member, other, depth + 1); }))
            return true;
    switch (x.types & y.types) {
      case kInteger:
      case kFraction:
      case kInteger | kFraction:
        return below(x, y) || below(y, x);
      case kObject:
        return told_apart(x, y, depth) || lacks_required(x, y) || lacks_required(y, x);
      default:
        return false;
    }
  }

 private:
  bool listed_apart(const Facts& facts, NodeId other) {
    return std::ranges::any_of(facts.nodes, [&](const SchemaNode* node) {
      if (!node->allowed || budget_.exhausted()) return false;
      budget_.spend(10 * node->allowed->size());
      return std::ranges::none_of(*node->allowed,
                                  [&](const json::value& v) { return values_.matches(other, v); });
    });
  }

  static bool below(const Facts& low, const Facts& high) {
    for (const SchemaNode* a : low.nodes)
      for (const SchemaNode* b : high.nodes)
        if (a->maximum && b->minimum &&
            (a->maximum->value < b->minimum->value ||
             (a->maximum->value == b->minimum->value && (a->maximum->exclusive || b->minimum->exclusive))))
          return true;
    return false;
  }

  bool requires_name(const Facts& facts, const std::string& name) {
    for (const SchemaNode* node : facts.nodes) budget_.spend(node->required.size());
    return std::ranges::any_of(facts.nodes, [&](const SchemaNode* node) {
      return std::ranges::find(node->required, name) != node->required.end();
    });
  }

  // A property that both require and whose values are apart.
  bool told_apart(const Facts& x, const Facts& y, int depth) {
    for (const SchemaNode* a : x.nodes) {
      for (const auto& [name, child] : a->properties) {
        if (!requires_name(x, name) || !requires_name(y, name)) continue;
        for (const SchemaNode* b : y.nodes) budget_.spend(b->properties.size());
        for (const SchemaNode* b : y.nodes)
          for (const auto& [other_name, other] : b->properties)
            if (name == other_name && run(child, other, depth + 1)) return true;
      }
    }
    return false;
  }

  // `closed` forbids a name that `other` requires.
  bool lacks_required(const Facts& closed, const Facts& other) {
    for (const SchemaNode* node : closed.nodes) {
      if (!node->additional || !schema_.nodes[*node->additional].never) continue;
      for (const SchemaNode* b : other.nodes)
        budget_.spend(b->required.size() * (1 + node->properties.size()));
      for (const SchemaNode* b : other.nodes)
        for (const std::string& name : b->required)
          if (std::ranges::none_of(node->properties,
                                   [&](const auto& property) { return property.first == name; }))
            return true;
    }
    return false;
  }

  const Schema& schema_;
  ValueMatcher values_;
  WorkBudget& budget_;
};

struct Format {
  std::string_view name, pattern;
};
#define ASSAY_DATE                                                                                           \
  "[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-" \
  "(?:0["                                                                                                    \
  "1-9]|1[0-9]|2[0-8]))"
#define ASSAY_TIME \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
// RFC 3339 (without leap seconds and 29 February, which only some years have), RFC 9562, RFC 2673, RFC 1123;
// the addresses are the ordinary ones among those that RFC 5321 allows.
constexpr std::array kFormats = {
    Format{"date", "^" ASSAY_DATE "$"},
    Format{"time", "^" ASSAY_TIME "$"},
    Format{"date-time", "^" ASSAY_DATE "T" ASSAY_TIME "$"},
    Format{"duration",
           "^P(?:[0-9]{1,4}W|(?:[0-9]{1,4}D|[0-9]{1,4}M(?:[0-9]{1,4}D)?|[0-9]{1,4}Y(?:[0-9]{1,4}M(?:[0-9]{1,"
           "4}D)?)?)(?:T(?:[0-9]{1,4}H(?:[0-9]{1,4}M(?:[0-9]{1,4}S)?)?|[0-9]{1,4}M(?:[0-9]{1,4}S)?|[0-9]{1,4}"
           "S))?|T(?:[0-9]{1,4}H(?:[0-9]{1,4}M(?:[0-9]{1,4}S)?)?|[0-9]{1,4}M(?:[0-9]{1,4}S)?|[0-9]{1,4}S))$"},
    Format{"email",
           "^[A-Za-z0-9_+-]{1,20}(?:\\.[A-Za-z0-9_+-]{1,20}){0,2}@[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9]"
           ")?(?:\\.[A-"
           "Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?){1,3}$"},
    Format{"hostname",
           "^[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
           "){0,"
           "4}$"},
    Format{
        "ipv4",
        "^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?["
        "0-9])$"},
    Format{"uuid", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"},
};
#undef ASSAY_DATE
#undef ASSAY_TIME

}  // namespace

bool ValueMatcher::matches(NodeId id, const json::value& value) {
  known_.clear();
  return holds(id, value);
}

bool ValueMatcher::holds(NodeId id, const json::value& value) {
  const std::pair key(id, &value);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const SchemaNode& node = schema_.nodes[id];
  const bool result = holds_itself(node, value) && holds_included(node, value);
  known_[key] = result;
  return result;
}

bool ValueMatcher::holds_itself(const SchemaNode& node, const json::value& value) {
  if (node.never || (node.types & type_of(value)) == 0) return false;
  if (node.allowed &&
      std::ranges::none_of(*node.allowed, [&](const json::value& v) { return same(v, value); }))
    return false;
  if (value.is_string() && !string_holds(node, value.get_string())) return false;
  if (value.is_number() && !number_matches(node, value.to_number<double>())) return false;
  if (value.is_array() && !array_holds(node, value.get_array())) return false;
  if (value.is_object() && !object_holds(node, value.get_object())) return false;
  return true;
}

bool ValueMatcher::holds_included(const SchemaNode& node, const json::value& value) {
  const auto holds_here = [&](NodeId other) { return holds(other, value); };
  return std::ranges::all_of(node.all_of, holds_here) &&
         std::ranges::all_of(node.one_way,
                             [&](const auto& list) { return std::ranges::any_of(list, holds_here); });
}

bool ValueMatcher::matches_listed(const std::vector<NodeId>& nodes, const json::value& value) {
  known_.clear();
  return std::ranges::all_of(nodes, [&](NodeId id) { return holds_itself(schema_.nodes[id], value); });
}

bool ValueMatcher::string_holds(const SchemaNode& node, std::string_view text) {
  const size_t length = to_code_points(text).size();
  if (length < node.min_length || (node.max_length != kUnbounded && length > node.max_length)) return false;
  return std::ranges::all_of(
      node.patterns, [&](const std::string& pattern) { return schema_.patterns.at(pattern).matches(text); });
}

bool ValueMatcher::array_holds(const SchemaNode& node, const json::array& array) {
  if (array.size() < node.min_items || (node.max_items != kUnbounded && array.size() > node.max_items))
    return false;
  for (size_t i = 0; i < array.size(); ++i) {
    const std::optional<NodeId> item =
        i < node.prefix_items.size() ? std::optional(node.prefix_items[i]) : node.items;
    if (item && !holds(*item, array[i])) return false;
  }
  return true;
}

bool ValueMatcher::object_holds(const SchemaNode& node, const json::object& object) {
  for (const std::string& name : node.required)
    if (!object.contains(name)) return false;
  for (const auto& entry : object) {
    const auto known =
        std::ranges::find(node.properties, std::string_view(entry.key()),
                          [](const auto& property) { return std::string_view(property.first); });
    const std::optional<NodeId> child =
        known != node.properties.end() ? std::optional(known->second) : node.additional;
    if (child && !holds(*child, entry.value())) return false;
  }
  return true;
}

bool provably_disjoint(const Schema& schema, NodeId a, NodeId b, WorkBudget& budget) {
  return Disjointness(schema, budget).run(a, b);
}

std::optional<std::string_view> pattern_of_format(std::string_view format) {
  const auto known = std::ranges::find(kFormats, format, &Format::name);
  if (known == kFormats.end()) return std::nullopt;
  return known->pattern;
}

std::string scalar_json(const json::value& value) {
  CHECK(!value.is_structured());
  if (value.is_string()) return json_spelling(value.get_string());
  return value.is_double() ? fmt::format("{}", value.get_double()) : json::serialize(value);
}

}  // namespace assay::grammar
