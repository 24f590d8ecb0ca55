#include "grammar/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <string_view>

#include "grammar/pattern.h"

namespace assay::grammar {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 14> kAnnotations = {
    "title", "description", "default",  "examples",      "example", "$schema",     "$comment",
    "$id",   "deprecated",  "readOnly", "discriminator", "$defs",   "definitions", "writeOnly"};

struct TypeName {
  std::string_view name;
  uint8_t bits;
};
constexpr std::array kTypeNames = {TypeName{"null", kNull},       TypeName{"boolean", kBoolean},
                                   TypeName{"integer", kInteger}, TypeName{"number", kInteger | kFraction},
                                   TypeName{"string", kString},   TypeName{"array", kArray},
                                   TypeName{"object", kObject}};

std::string escaped(std::string_view key) {
  std::string pointer;
  for (const char c : key) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

// %20 and the like in a $ref.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  const auto hex = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      decoded += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

class Parser {
 public:
  Parser(const json::value& document, WorkBudget& budget) : document_(document), budget_(budget) {}

  Result<Schema> run() {
    RETURN_IF_ERROR(node_of(document_, ""));
    // A list instead of recursion: chains of $ref may be long.
    while (!pending_.empty()) {
      const auto [id, value] = pending_.front();
      pending_.pop_front();
      RETURN_IF_ERROR(read(id, *value));
    }
    RETURN_IF_ERROR(refuse_cycles());
    for (const OneOf& list : one_ofs_) RETURN_IF_ERROR(check_exclusive(list));
    return std::move(schema_);
  }

 private:
  struct OneOf {
    NodeId node;
    std::vector<NodeId> alternatives;
  };

  Result<NodeId> node_of(const json::value& value, std::string path) {
    const auto [entry, added] = ids_.try_emplace(&value, static_cast<NodeId>(schema_.nodes.size()));
    if (!added) return entry->second;
    if (schema_.nodes.size() >= Schema::kMaxNodes)
      return fail(ErrorCode::kResourceExhausted, path, "the schema has more than {} parts",
                  Schema::kMaxNodes);
    schema_.nodes.push_back({.path = std::move(path)});
    pending_.emplace_back(entry->second, &value);
    return entry->second;
  }

  Result<void> read(NodeId id, const json::value& value) {
    if (value.is_bool()) {
      schema_.nodes[id].never = !value.get_bool();
      return {};
    }
    if (!value.is_object()) return bad(id, "", "expected an object or a boolean");
    for (const auto& entry : value.get_object())
      RETURN_IF_ERROR(read_keyword(id, entry.key(), entry.value()));
    const SchemaNode& node = schema_.nodes[id];
    if (node.min_length > node.max_length || node.min_items > node.max_items) schema_.nodes[id].never = true;
    return {};
  }

  std::unexpected<Error> bad(NodeId id, std::string_view keyword, std::string_view what) const {
    const std::string& path = schema_.nodes[id].path;
    return fail(ErrorCode::kInvalidArgument,
                keyword.empty() ? path : fmt::format("{}/{}", path, escaped(keyword)), "{}", what);
  }
  std::unexpected<Error> unsupported(NodeId id, std::string_view keyword, std::string_view what) const {
    return fail(ErrorCode::kUnsupported, fmt::format("{}/{}", schema_.nodes[id].path, escaped(keyword)), "{}",
                what);
  }

  Result<void> read_keyword(NodeId id, std::string_view keyword, const json::value& value) {
    using Reader = Result<void> (Parser::*)(NodeId, std::string_view, const json::value&);
    static const std::map<std::string_view, Reader> kReaders = {
        {"type", &Parser::read_type},
        {"enum", &Parser::read_enum},
        {"const", &Parser::read_const},
        {"properties", &Parser::read_properties},
        {"required", &Parser::read_required},
        {"additionalProperties", &Parser::read_child},
        {"items", &Parser::read_child},
        {"prefixItems", &Parser::read_list},
        {"allOf", &Parser::read_list},
        {"anyOf", &Parser::read_list},
        {"oneOf", &Parser::read_list},
        {"minItems", &Parser::read_count},
        {"maxItems", &Parser::read_count},
        {"minLength", &Parser::read_count},
        {"maxLength", &Parser::read_count},
        {"pattern", &Parser::read_pattern},
        {"format", &Parser::read_format},
        {"minimum", &Parser::read_bound},
        {"maximum", &Parser::read_bound},
        {"exclusiveMinimum", &Parser::read_bound},
        {"exclusiveMaximum", &Parser::read_bound},
        {"$ref", &Parser::read_ref},
        {"uniqueItems", &Parser::read_neutral},
        {"nullable", &Parser::read_neutral},
        {"multipleOf", &Parser::read_multiple},
    };
    if (const auto reader = kReaders.find(keyword); reader != kReaders.end())
      return (this->*reader->second)(id, keyword, value);
    if (std::ranges::find(kAnnotations, keyword) != kAnnotations.end()) return {};
    return unsupported(id, keyword,
                       fmt::format("the keyword \"{}\" is not supported", keyword.substr(0, 60)));
  }

  Result<void> read_type(NodeId id, std::string_view keyword, const json::value& value) {
    uint8_t bits = 0;
    const auto add = [&](const json::value& name) {
      if (!name.is_string()) return false;
      const auto known = std::ranges::find(kTypeNames, std::string_view(name.get_string()), &TypeName::name);
      if (known == kTypeNames.end()) return false;
      bits |= known->bits;
      return true;
    };
    const json::array* list = value.if_array();
    const bool known = list == nullptr ? add(value) : !list->empty() && std::ranges::all_of(*list, add);
    if (!known)
      return bad(id, keyword,
                 "expected one or several of null, boolean, integer, number, string, array, object");
    schema_.nodes[id].types &= bits;
    return {};
  }

  Result<void> read_enum(NodeId id, std::string_view keyword, const json::value& value) {
    const json::array* list = value.if_array();
    if (list == nullptr || list->empty()) return bad(id, keyword, "expected an array of at least one value");
    return allow(id, keyword, {list->begin(), list->end()});
  }

  Result<void> read_const(NodeId id, std::string_view keyword, const json::value& value) {
    return allow(id, keyword, {value});
  }

  Result<void> allow(NodeId id, std::string_view keyword, std::vector<json::value> values) {
    n_listed_ += values.size();
    if (n_listed_ > Schema::kMaxListed)
      return fail(ErrorCode::kResourceExhausted, schema_.nodes[id].path,
                  "the schema lists more than {} values", Schema::kMaxListed);
    std::optional<std::vector<json::value>>& allowed = schema_.nodes[id].allowed;
    if (allowed)
      std::erase_if(values,
                    [&](const json::value& v) { return std::ranges::find(*allowed, v) == allowed->end(); });
    allowed = std::move(values);
    if (allowed->empty()) return bad(id, keyword, "enum and const exclude each other");
    return {};
  }

  Result<void> read_properties(NodeId id, std::string_view keyword, const json::value& value) {
    const json::object* object = value.if_object();
    if (object == nullptr) return bad(id, keyword, "expected an object");
    std::vector<std::pair<std::string, NodeId>> properties;
    for (const auto& entry : *object) {
      const std::string_view name = entry.key();
      ASSIGN_OR_RETURN(
          const NodeId child,
          node_of(entry.value(), fmt::format("{}/properties/{}", schema_.nodes[id].path, escaped(name))));
      properties.emplace_back(name, child);
    }
    schema_.nodes[id].properties = std::move(properties);
    return {};
  }

  Result<void> read_required(NodeId id, std::string_view keyword, const json::value& value) {
    const json::array* list = value.if_array();
    if (list == nullptr || !std::ranges::all_of(*list, [](const json::value& v) { return v.is_string(); }))
      return bad(id, keyword, "expected an array of strings");
    for (const json::value& name : *list) schema_.nodes[id].required.emplace_back(name.get_string());
    return {};
  }

  Result<void> read_child(NodeId id, std::string_view keyword, const json::value& value) {
    if (keyword == "items" && value.is_array())
      return unsupported(id, keyword, "an array of schemas is not supported; use prefixItems");
    ASSIGN_OR_RETURN(const NodeId child,
                     node_of(value, fmt::format("{}/{}", schema_.nodes[id].path, keyword)));
    (keyword == "items" ? schema_.nodes[id].items : schema_.nodes[id].additional) = child;
    return {};
  }

  Result<void> read_list(NodeId id, std::string_view keyword, const json::value& value) {
    const json::array* list = value.if_array();
    if (list == nullptr || list->empty()) return bad(id, keyword, "expected an array of at least one schema");
    std::vector<NodeId> children;
    for (size_t i = 0; i < list->size(); ++i) {
      ASSIGN_OR_RETURN(const NodeId child,
                       node_of((*list)[i], fmt::format("{}/{}/{}", schema_.nodes[id].path, keyword, i)));
      children.push_back(child);
    }
    SchemaNode& node = schema_.nodes[id];
    if (keyword == "prefixItems") {
      node.prefix_items = std::move(children);
    } else if (keyword == "allOf") {
      node.all_of.insert(node.all_of.end(), children.begin(), children.end());
    } else {
      if (keyword == "oneOf") one_ofs_.push_back({id, children});
      node.one_way.push_back(std::move(children));
    }
    return {};
  }

  Result<void> read_count(NodeId id, std::string_view keyword, const json::value& value) {
    const double number = value.is_number() ? value.to_number<double>() : -1;
    if (number < 0 || number != std::floor(number) || number > 1e9)
      return bad(id, keyword, "expected a whole number from 0 to 1e9");
    const auto count = static_cast<uint32_t>(number);
    SchemaNode& node = schema_.nodes[id];
    if (keyword == "minItems") node.min_items = count;
    if (keyword == "maxItems") node.max_items = count;
    if (keyword == "minLength") node.min_length = count;
    if (keyword == "maxLength") node.max_length = count;
    return {};
  }

  Result<void> read_pattern(NodeId id, std::string_view keyword, const json::value& value) {
    if (!value.is_string()) return bad(id, keyword, "expected a string");
    const std::string_view pattern = value.get_string();
    return add_pattern(id, pattern);
  }

  Result<void> add_pattern(NodeId id, std::string_view pattern) {
    schema_.nodes[id].patterns.emplace_back(pattern);
    const auto [entry, added] = schema_.patterns.try_emplace(std::string(pattern));
    if (!added) return {};
    auto compiled = compile_pattern(pattern, budget_);
    if (!compiled)
      return fail(compiled.error().code, schema_.nodes[id].path + "/pattern", "{}", compiled.error().what);
    entry->second = std::move(*compiled);
    return {};
  }

  Result<void> read_format(NodeId id, std::string_view keyword, const json::value& value) {
    if (!value.is_string()) return bad(id, keyword, "expected a string");
    const std::string_view format = value.get_string();
    const auto pattern = pattern_of_format(format);
    if (!pattern)
      return unsupported(id, keyword,
                         fmt::format("the format \"{}\" is not supported", format.substr(0, 60)));
    return add_pattern(id, *pattern);
  }

  Result<void> read_bound(NodeId id, std::string_view keyword, const json::value& value) {
    if (!value.is_number() || !std::isfinite(value.to_number<double>()))
      return bad(id, keyword, "expected a number");
    const NumberBound bound{value.to_number<double>(), keyword.starts_with("exclusive")};
    SchemaNode& node = schema_.nodes[id];
    const bool lower = keyword.ends_with("inimum");
    std::optional<NumberBound>& kept = lower ? node.minimum : node.maximum;
    const bool tighter = !kept || (lower ? bound.value > kept->value : bound.value < kept->value) ||
                         (bound.value == kept->value && bound.exclusive);
    if (tighter) kept = bound;
    return {};
  }

  Result<void> read_ref(NodeId id, std::string_view keyword, const json::value& value) {
    if (!value.is_string()) return bad(id, keyword, "expected a string");
    const std::string_view ref = value.get_string();
    if (!ref.starts_with('#') || (ref.size() > 1 && ref[1] != '/'))
      return unsupported(id, keyword, "only references within the schema (\"#/...\") are supported");
    const std::string pointer = percent_decoded(ref.substr(1));
    json::error_code error;
    const json::value* target = document_.find_pointer(pointer, error);
    if (target == nullptr) return bad(id, keyword, fmt::format("\"{}\" does not exist", ref.substr(0, 200)));
    ASSIGN_OR_RETURN(const NodeId child, node_of(*target, pointer));
    schema_.nodes[id].all_of.push_back(child);
    return {};
  }

  // Allowed where it asks for nothing.
  Result<void> read_neutral(NodeId id, std::string_view keyword, const json::value& value) {
    if (value.is_bool() && !value.get_bool()) return {};
    return unsupported(id, keyword, fmt::format("\"{}\" is not supported", keyword));
  }

  Result<void> read_multiple(NodeId id, std::string_view keyword, const json::value& value) {
    if (value.is_number() && value.to_number<double>() == 1) {
      schema_.nodes[id].types &= static_cast<uint8_t>(~kFraction);
      return {};
    }
    return unsupported(id, keyword, "\"multipleOf\" is not supported, except 1");
  }

  // A schema that is defined by itself without a value in between defines nothing.
  Result<void> refuse_cycles() const {
    enum class Mark : uint8_t { kNew, kOpen, kDone };
    std::vector<Mark> marks(schema_.nodes.size(), Mark::kNew);
    const auto in_place = [&](NodeId id) {
      std::vector<NodeId> others = schema_.nodes[id].all_of;
      for (const std::vector<NodeId>& list : schema_.nodes[id].one_way)
        others.insert(others.end(), list.begin(), list.end());
      return others;
    };
    struct Visit {
      NodeId id;
      std::vector<NodeId> others;
      size_t next = 0;
    };
    for (NodeId root = 0; root < schema_.nodes.size(); ++root) {
      if (marks[root] != Mark::kNew) continue;
      std::vector<Visit> stack{{root, in_place(root)}};
      marks[root] = Mark::kOpen;
      while (!stack.empty()) {
        Visit& top = stack.back();
        if (top.next == top.others.size()) {
          marks[top.id] = Mark::kDone;
          stack.pop_back();
          continue;
        }
        const NodeId other = top.others[top.next++];
        if (marks[other] == Mark::kOpen) return bad(other, "", "refers to itself without a value in between");
        if (marks[other] == Mark::kDone) continue;
        marks[other] = Mark::kOpen;
        stack.push_back({other, in_place(other)});
      }
    }
    return {};
  }

  Result<void> check_exclusive(const OneOf& list) {
    constexpr size_t kMaxAlternatives = 100;
    if (list.alternatives.size() > kMaxAlternatives)
      return unsupported(list.node, "oneOf", fmt::format("more than {} alternatives", kMaxAlternatives));
    for (size_t i = 0; i < list.alternatives.size(); ++i)
      for (size_t k = i + 1; k < list.alternatives.size(); ++k)
        if (!provably_disjoint(schema_, list.alternatives[i], list.alternatives[k], budget_))
          return unsupported(
              list.node, "oneOf",
              fmt::format("alternatives {} and {} might both hold; use anyOf, or tell them apart by a "
                          "required property with its own const or by their types",
                          i, k));
    return {};
  }

  const json::value& document_;
  WorkBudget& budget_;
  Schema schema_;
  std::map<const json::value*, NodeId> ids_;
  std::deque<std::pair<NodeId, const json::value*>> pending_;
  std::vector<OneOf> one_ofs_;
  size_t n_listed_ = 0;
};

}  // namespace

Result<Schema> Schema::parse(const json::value& document, WorkBudget& budget) {
  return Parser(document, budget).run();
}

}  // namespace assay::grammar
