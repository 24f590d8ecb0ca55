#include "grammar/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "grammar/number_range.h"
#include "grammar/pattern.h"
#include "grammar/schema.h"

namespace assay::grammar {
namespace {

// Nodes that must hold together, sorted. A value's grammar depends on nothing else but its depth.
using Conjunction = std::vector<NodeId>;

class Compiler {
 public:
  Compiler(AutomatonBuilder& builder, JsonRules& rules, const Schema& schema, WorkBudget& budget)
      : builder_(builder), rules_(rules), schema_(schema), values_(schema), budget_(budget) {}

  // The root and everything below it: rules are made as they are asked for, and filled from a list.
  Result<RuleId> run() {
    const RuleId root = rule_of({0}, 0);
    while (!pending_.empty()) {
      const auto [nodes, depth, rule] = std::move(pending_.back());
      pending_.pop_back();
      if (builder_.full()) break;  // build() says so
      RETURN_IF_ERROR(fill(nodes, depth, rule));
      // What is left out once the budget is used up must not be mistaken for what the schema forbids.
      if (budget_.exhausted())
        return fail(ErrorCode::kResourceExhausted, where(nodes), "the schema takes too much work");
    }
    return root;
  }

 private:
  struct Pending {
    Conjunction nodes;
    uint32_t depth;
    RuleId rule;
  };

  RuleId rule_of(Conjunction nodes, uint32_t depth) {
    std::ranges::sort(nodes);
    nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
    const auto [entry, added] = known_.try_emplace({nodes, depth}, kNone);
    if (added) {
      entry->second = builder_.add_rule();
      builder_.set_start(entry->second, builder_.add_state());
      pending_.push_back({std::move(nodes), depth, entry->second});
    }
    return entry->second;
  }

  const SchemaNode& node(NodeId id) const { return schema_.nodes[id]; }
  const std::string& where(const Conjunction& nodes) const { return node(nodes.front()).path; }

  // --- alternatives: what is included in place, multiplied out ---

  void include(NodeId id, std::set<NodeId>& all) const {
    std::vector<NodeId> work{id};
    while (!work.empty()) {
      const NodeId next = work.back();
      work.pop_back();
      if (!all.insert(next).second) continue;
      work.insert(work.end(), node(next).all_of.begin(), node(next).all_of.end());
    }
  }

  Result<std::vector<Conjunction>> alternatives(const Conjunction& nodes) {
    std::set<NodeId> all;
    for (const NodeId id : nodes) include(id, all);
    std::set<std::set<NodeId>> done;
    struct Open {
      std::set<NodeId> nodes;
      std::set<std::pair<NodeId, size_t>> chosen;  // lists that a member was taken of
    };
    std::vector<Open> work{{std::move(all), {}}};
    while (!work.empty()) {
      Open open = std::move(work.back());
      work.pop_back();
      ++n_alternatives_;
      budget_.spend(10 * open.nodes.size());
      if (done.size() + work.size() > kMaxAlternatives || n_alternatives_ > kMaxAllAlternatives ||
          budget_.exhausted())
        return fail(ErrorCode::kResourceExhausted, where(nodes),
                    "anyOf, oneOf and allOf multiply to too many alternatives");
      const auto list = next_list(open.nodes, open.chosen);
      if (!list) {
        done.insert(std::move(open.nodes));
        continue;
      }
      open.chosen.insert(*list);
      for (const NodeId member : node(list->first).one_way[list->second]) {
        Open& next = work.emplace_back(open);
        include(member, next.nodes);
      }
    }
    return conjunctions(done);
  }

  static std::vector<Conjunction> conjunctions(const std::set<std::set<NodeId>>& sets) {
    std::vector<Conjunction> list;
    for (const std::set<NodeId>& set : sets) list.emplace_back(set.begin(), set.end());
    return list;
  }

  std::optional<std::pair<NodeId, size_t>> next_list(
      const std::set<NodeId>& nodes, const std::set<std::pair<NodeId, size_t>>& chosen) const {
    for (const NodeId id : nodes)
      for (size_t i = 0; i < node(id).one_way.size(); ++i)
        if (!chosen.contains({id, i})) return std::pair(id, i);
    return std::nullopt;
  }

  // --- values ---

  Result<void> fill(const Conjunction& nodes, uint32_t depth, RuleId rule) {
    const StateId start = builder_.start(rule), end = builder_.add_state();
    builder_.set_final(end);
    ASSIGN_OR_RETURN(const std::vector<Conjunction> ways, alternatives(nodes));
    for (const Conjunction& way : ways) RETURN_IF_ERROR(add_value(way, depth, start, end));
    return {};
  }

  void call(StateId from, RuleId rule, StateId end) {
    if (rule != kNone) builder_.add_call(from, rule, end);
  }

  Result<void> add_value(const Conjunction& nodes, uint32_t depth, StateId start, StateId end) {
    uint8_t types = kAnyType;
    for (const NodeId id : nodes) {
      if (node(id).never) return {};
      types &= node(id).types;
    }
    const auto listing = std::ranges::find_if(nodes, [&](NodeId id) { return node(id).allowed.has_value(); });
    if (listing != nodes.end()) return add_listed(nodes, *listing, start, end);
    for (const auto& [bit, text] : {std::pair{kNull, "null"}, {kBoolean, "true"}, {kBoolean, "false"}})
      if (types & bit) call(start, rules_.literal(text), end);
    if (types & (kInteger | kFraction)) call(start, number(nodes, (types & kFraction) == 0), end);
    if (types & kString) {
      ASSIGN_OR_RETURN(const RuleId text, string(nodes));
      call(start, text, end);
    }
    if (depth >= kMaxDepth) return {};
    if (types & kArray) call(start, array(nodes, depth), end);
    if (types & kObject) {
      ASSIGN_OR_RETURN(const RuleId members, object(nodes, depth));
      call(start, members, end);
    }
    return {};
  }

  // enum and const: a tree of the spellings of those values that everything else allows too.
  Result<void> add_listed(const Conjunction& nodes, NodeId listing, StateId start, StateId end) {
    std::map<std::pair<StateId, uint8_t>, StateId> tree;
    for (const boost::json::value& value : *node(listing).allowed) {
      budget_.spend(10 * nodes.size());
      if (budget_.exhausted() || !values_.matches_listed(nodes, value)) continue;
      if (value.is_structured()) {
        builder_.add_jump(spell(start, value), end);
        continue;
      }
      StateId at = start;
      for (const char c : scalar_json(value)) {
        const auto byte = static_cast<uint8_t>(c);
        const auto [entry, added] = tree.try_emplace({at, byte}, 0);
        if (added) {
          entry->second = builder_.add_state();
          builder_.add_edge(at, byte, byte, entry->second);
        }
        at = entry->second;
        if (builder_.full()) return {};
      }
      builder_.add_jump(at, end);
    }
    return {};
  }

  // Listed objects and arrays, with the usual freedom of white space. The document's depth bounds the
  // recursion.
  StateId spell(StateId at, const boost::json::value& value) {
    if (!value.is_structured()) return builder_.add_text(at, scalar_json(value));
    const boost::json::object* object = value.if_object();
    const size_t n = object != nullptr ? object->size() : value.get_array().size();
    at = rules_.after_space(builder_.add_text(at, object != nullptr ? "{" : "["));
    for (size_t i = 0; i < n && !builder_.full(); ++i) {
      if (i > 0) at = after_comma(at);
      if (object != nullptr) {
        const auto& member = *(object->begin() + static_cast<ptrdiff_t>(i));
        at = rules_.after_space(builder_.add_text(at, json_spelling(member.key()) + ":"));
        at = spell(at, member.value());
      } else {
        at = spell(at, value.get_array()[i]);
      }
    }
    return builder_.add_text(n > 0 ? rules_.after_space(at) : at, object != nullptr ? "}" : "]");
  }

  RuleId number(const Conjunction& nodes, bool whole) {
    std::optional<NumberBound> low, high;
    for (const NodeId id : nodes) {
      const auto& [minimum, maximum] = std::pair{node(id).minimum, node(id).maximum};
      if (minimum &&
          (!low || minimum->value > low->value || (minimum->value == low->value && minimum->exclusive)))
        low = minimum;
      if (maximum &&
          (!high || maximum->value < high->value || (maximum->value == high->value && maximum->exclusive)))
        high = maximum;
    }
    if (!low && !high) return whole ? rules_.integer() : rules_.number();
    return whole ? add_integer_range(builder_, low, high) : add_number_range(builder_, low, high);
  }

  Result<RuleId> string(const Conjunction& nodes) {
    uint32_t min = 0, max = kUnbounded;
    std::set<std::string> patterns;
    for (const NodeId id : nodes) {
      min = std::max(min, node(id).min_length);
      max = std::min(max, node(id).max_length);
      patterns.insert(node(id).patterns.begin(), node(id).patterns.end());
    }
    if (min > max) return kNone;
    const auto [entry, added] = strings_.try_emplace({patterns, min, max}, kNone);
    if (!added) return entry->second;
    if (patterns.empty()) return entry->second = rules_.string_of_length(min, max);
    std::optional<CodePointDfa> content;
    for (const std::string& pattern : patterns) {
      const CodePointDfa& one = schema_.patterns.at(pattern);
      if (!content) {
        content = one;
        continue;
      }
      ASSIGN_OR_RETURN(content, at(nodes, intersect(*content, one, budget_)));
    }
    if (min > 0 || max != kUnbounded) {
      ASSIGN_OR_RETURN(const CodePointDfa lengths, at(nodes, CodePointDfa::of_length(min, max)));
      ASSIGN_OR_RETURN(content, at(nodes, intersect(*content, lengths, budget_)));
    }
    return entry->second = content->empty() ? kNone : rules_.string_of(*content);
  }

  Result<CodePointDfa> at(const Conjunction& nodes, Result<CodePointDfa> dfa) const {
    if (dfa) return dfa;
    return fail(dfa.error().code, where(nodes), "pattern, minLength and maxLength together: {}",
                dfa.error().what);
  }

  // --- arrays ---

  RuleId item(const Conjunction& nodes, size_t index, uint32_t depth) {
    Conjunction items;
    for (const NodeId id : nodes) {
      const SchemaNode& own = node(id);
      if (index < own.prefix_items.size()) {
        items.push_back(own.prefix_items[index]);
      } else if (own.items) {
        items.push_back(*own.items);
      }
    }
    return items.empty() ? rules_.value(depth + 1) : rule_of(std::move(items), depth + 1);
  }

  RuleId array(const Conjunction& nodes, uint32_t depth) {
    uint32_t min = 0, max = kUnbounded;
    size_t n_prefix = 1;  // the first item has no comma before it
    for (const NodeId id : nodes) {
      min = std::max(min, node(id).min_items);
      max = std::min(max, node(id).max_items);
      n_prefix = std::max(n_prefix, node(id).prefix_items.size());
    }
    if (min > max) return kNone;
    const StateId start = builder_.add_state(), close = builder_.add_state(), end = builder_.add_state();
    StateId at = builder_.add_state();
    builder_.add_edge(start, '[', '[', at);
    at = rules_.after_space(at);
    if (min == 0) builder_.add_edge(at, ']', ']', end);
    builder_.add_edge(close, ']', ']', end);
    builder_.set_final(end);
    const auto n_single = static_cast<uint32_t>(std::min<size_t>(n_prefix, max));
    for (uint32_t i = 0; i < n_single; ++i) {
      if (i > 0) {
        if (i >= min) builder_.add_call(at, rules_.space(), close);
        at = after_comma(at);
      }
      const StateId after = builder_.add_state();
      builder_.add_call(at, item(nodes, i, depth), after);
      at = after;
    }
    if (n_single > 0) {
      const StateId done = builder_.add_state();
      builder_.add_call(at,
                        further_items(nodes, n_prefix, depth, min > n_single ? min - n_single : 0,
                                      max == kUnbounded ? kUnbounded : max - n_single),
                        done);
      builder_.add_call(done, rules_.space(), close);
    }
    return new_rule(start);
  }

  RuleId further_items(const Conjunction& nodes, size_t index, uint32_t depth, uint32_t min, uint32_t max) {
    const StateId start = builder_.add_state(), end = builder_.add_state();
    builder_.add_call(after_comma(start), item(nodes, index, depth), end);
    builder_.set_final(end);
    return builder_.add_repeat(new_rule(start), min, max);
  }

  StateId after_comma(StateId from) {
    const StateId comma = builder_.add_state();
    builder_.add_edge(from, ',', ',', comma);
    return rules_.after_space(comma);
  }

  RuleId new_rule(StateId start) {
    const RuleId rule = builder_.add_rule();
    builder_.set_start(rule, start);
    return rule;
  }

  // --- objects ---

  // What is said about an object's members by all nodes together.
  struct Members {
    struct Property {
      std::string name;
      bool required = false;
      RuleId value = kNone;  // kNone: forbidden
    };
    std::vector<Property> properties;
    RuleId additional = kNone;  // the value of others; kNone: there are none
  };

  RuleId value_of(const Conjunction& nodes,
                  const std::map<NodeId, std::map<std::string_view, NodeId>>& by_name,
                  const std::string* name, uint32_t depth) {
    Conjunction values;
    budget_.spend(nodes.size());
    if (budget_.exhausted()) return kNone;  // run() says so
    for (const NodeId id : nodes) {
      if (name != nullptr) {
        const auto& names = by_name.at(id);
        if (const auto found = names.find(*name); found != names.end()) {
          values.push_back(found->second);
          continue;
        }
      }
      if (node(id).additional) values.push_back(*node(id).additional);
    }
    if (std::ranges::any_of(values, [&](NodeId id) { return node(id).never; })) return kNone;
    return values.empty() ? rules_.value(depth + 1) : rule_of(std::move(values), depth + 1);
  }

  Members members_of(const Conjunction& nodes, uint32_t depth) {
    std::map<NodeId, std::map<std::string_view, NodeId>> by_name;
    std::set<std::string_view> required, listed;
    std::vector<std::string> order;
    bool open = true;
    bool says = false;
    for (const NodeId id : nodes) {
      auto& names = by_name[id];
      for (const auto& [name, child] : node(id).properties) {
        names.emplace(name, child);
        if (listed.insert(name).second) order.push_back(name);
      }
      open = open && node(id).properties.empty();
      says = says || node(id).additional.has_value();
      required.insert(node(id).required.begin(), node(id).required.end());
    }
    for (const std::string_view name : required)
      if (!listed.contains(name)) order.emplace_back(name);
    Members members;
    for (const std::string& name : order)
      members.properties.push_back({name, required.contains(name), value_of(nodes, by_name, &name, depth)});
    if (open || says) members.additional = value_of(nodes, by_name, nullptr, depth);
    return members;
  }

  Result<RuleId> object(const Conjunction& nodes, uint32_t depth) {
    const Members members = members_of(nodes, depth);
    ASSIGN_OR_RETURN(const RuleId other_key, key_rule(members));
    const StateId start = builder_.add_state(), open = builder_.add_state(), close = builder_.add_state(),
                  end = builder_.add_state();
    builder_.add_edge(start, '{', '{', open);
    builder_.add_edge(close, '}', '}', end);
    builder_.set_final(end);
    StateId none = rules_.after_space(open);  // no member has been written yet
    StateId some = builder_.add_state();      // behind a member; reached from the first one on
    for (const Members::Property& property : members.properties) {
      const StateId key = builder_.add_state(), next = builder_.add_state(), next_none = builder_.add_state();
      builder_.add_jump(none, key);
      builder_.add_jump(after_comma(some), key);
      if (property.value != kNone) add_member(key, json_spelling(property.name), property.value, next);
      if (!property.required) {
        builder_.add_jump(some, next);
        builder_.add_jump(none, next_none);
      }
      none = next_none;
      some = next;
    }
    if (other_key != kNone) {
      const StateId key = builder_.add_state(), colon = builder_.add_state(), value = builder_.add_state();
      builder_.add_jump(none, key);
      builder_.add_jump(after_comma(some), key);
      builder_.add_call(key, other_key, colon);
      builder_.add_edge(colon, ':', ':', value);
      builder_.add_call(rules_.after_space(value), members.additional, some);
    }
    builder_.add_edge(none, '}', '}', end);
    builder_.add_call(some, rules_.space(), close);
    return new_rule(start);
  }

  void add_member(StateId from, const std::string& key, RuleId value, StateId next) {
    const StateId colon = builder_.add_text(from, key + ":");
    builder_.add_call(rules_.after_space(colon), value, next);
  }

  // Names that are not among the properties.
  Result<RuleId> key_rule(const Members& members) {
    if (members.additional == kNone) return kNone;
    if (members.properties.empty()) return rules_.string();
    std::vector<std::string> names;
    for (const Members::Property& property : members.properties) names.push_back(property.name);
    const auto [entry, added] = keys_.try_emplace(names, kNone);
    if (!added) return entry->second;
    ASSIGN_OR_RETURN(const CodePointDfa listed, CodePointDfa::of_texts(names));
    ASSIGN_OR_RETURN(const CodePointDfa others, subtract(CodePointDfa::everything(), listed, budget_));
    return entry->second = rules_.string_of(others);
  }

  AutomatonBuilder& builder_;
  JsonRules& rules_;
  const Schema& schema_;
  ValueMatcher values_;
  WorkBudget& budget_;
  size_t n_alternatives_ = 0;
  std::vector<Pending> pending_;
  std::map<std::pair<Conjunction, uint32_t>, RuleId> known_;
  std::map<std::tuple<std::set<std::string>, uint32_t, uint32_t>, RuleId> strings_;
  std::map<std::vector<std::string>, RuleId> keys_;
};

}  // namespace

Result<RuleId> add_json_schema(AutomatonBuilder& builder, JsonRules& rules,
                               const boost::json::value& schema) {
  WorkBudget budget;
  ASSIGN_OR_RETURN(const Schema parsed, Schema::parse(schema, budget));
  return Compiler(builder, rules, parsed, budget).run();
}

Result<Automaton> compile_json_schema(const boost::json::value& schema) {
  AutomatonBuilder builder;
  JsonRules rules(builder);
  ASSIGN_OR_RETURN(const RuleId root, add_json_schema(builder, rules, schema));
  return builder.build(root);
}

Result<Automaton> compile_json_object() {
  AutomatonBuilder builder;
  JsonRules rules(builder);
  return builder.build(rules.object(0));
}

}  // namespace assay::grammar
