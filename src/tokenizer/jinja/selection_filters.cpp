// map, select, reject, selectattr, rejectattr.
#include <algorithm>
#include <array>
#include <functional>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/filter_table.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operations.h"

namespace assay::tokenizer_internal::jinja {
namespace {

std::string_view callable_name(const Value& value, std::string_view what) {
  require_defined(value);
  const TextBody* name = value.text();
  if (!name) fail_render("the {} must be named by a string, not by {}", what, type_name(value));
  return name->bytes;
}

using Transform = std::function<Value(const Value& item)>;

Transform map_attribute(Heap& heap, const Arguments& arguments) {
  const BoundArguments bound("map", arguments, {"attribute", "default"}, 1);
  const Value path = bound.at(0);
  const std::optional<Value> fallback = bound.find_some(1) ? std::optional<Value>(bound.at(1)) : std::nullopt;
  return [&heap, path, fallback](const Value& item) {
    return follow_path(heap, item, path, fallback ? &*fallback : nullptr);
  };
}

Transform map_filter(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.empty()) fail_render("map requires a filter argument");
  Arguments rest = arguments;
  const Value filter = rest.positional.front();
  rest.positional.erase(rest.positional.begin());
  return [&interpreter, filter, rest](const Value& item) {
    return interpreter.apply_filter(callable_name(filter, "filter"), item, rest);
  };
}

// Items are mapped one by one as they are read; so are the arguments checked only then.
Value map(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const bool by_attribute =
      arguments.positional.empty() &&
      std::ranges::any_of(arguments.named, [](auto& named) { return named.first == "attribute"; });
  struct State {
    ItemReader reader;
    Transform transform;
  };
  const auto start = [&interpreter, arguments, by_attribute, input] {
    return State{ItemReader(interpreter.heap(), input), by_attribute
                                                            ? map_attribute(interpreter.heap(), arguments)
                                                            : map_filter(interpreter, arguments)};
  };
  return interpreter.heap().iterator(
      "generator", [start, input, state = std::optional<State>()]() mutable -> std::optional<Value> {
        if (!truth(input)) return std::nullopt;
        if (!state) state.emplace(start());
        auto item = state->reader.next();
        if (!item) return std::nullopt;
        return state->transform(*item);
      });
}

// How select and its kin judge an item: by a test or by its truth, on itself or on an attribute.
struct Judge {
  Judge(Interpreter& owner, const Arguments& arguments, bool uses_attribute)
      : interpreter(owner), by_attribute(uses_attribute), rest(arguments) {
    if (by_attribute) {
      if (rest.positional.empty()) fail_render("missing parameter for attribute name");
      path = take_first();
    }
    if (!rest.positional.empty()) test = take_first();
  }

  Value take_first() {
    Value first = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    return first;
  }

  bool passes(const Value& item) const {
    const Value value = by_attribute ? follow_path(interpreter.heap(), item, path) : item;
    return test ? interpreter.apply_test(callable_name(*test, "test"), value, rest) : truth(value);
  }

  Interpreter& interpreter;
  bool by_attribute;
  Arguments rest;
  Value path;
  std::optional<Value> test;
};

// Keeps the items that pass, or those that do not.
Value select(Interpreter& interpreter, const Value& input, const Arguments& arguments, bool by_attribute,
             bool wanted) {
  struct State {
    ItemReader reader;
    Judge judge;
  };
  const auto start = [&interpreter, arguments, by_attribute, input] {
    return State{ItemReader(interpreter.heap(), input), Judge(interpreter, arguments, by_attribute)};
  };
  return interpreter.heap().iterator(
      "generator", [start, input, wanted, state = std::optional<State>()]() mutable -> std::optional<Value> {
        if (!truth(input)) return std::nullopt;
        if (!state) state.emplace(start());
        while (auto item = state->reader.next()) {
          if (state->judge.passes(*item) == wanted) return item;
        }
        return std::nullopt;
      });
}

template <bool by_attribute, bool wanted>
Value select_items(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return select(interpreter, input, arguments, by_attribute, wanted);
}

constexpr std::array<FilterEntry, 5> kFilters = {{{"map", map},
                                                  {"select", select_items<false, true>},
                                                  {"reject", select_items<false, false>},
                                                  {"selectattr", select_items<true, true>},
                                                  {"rejectattr", select_items<true, false>}}};

}  // namespace

std::span<const FilterEntry> selection_filters() {
  return kFilters;
}

}  // namespace assay::tokenizer_internal::jinja
