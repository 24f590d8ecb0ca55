// map, select, reject, selectattr, rejectattr.
#include <array>

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

Value map_attribute(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("map", arguments, {"attribute", "default"}, 1);
  Heap& heap = interpreter.heap();
  std::vector<Value> mapped;
  ItemReader reader(heap, input);
  while (auto item = reader.next())
    mapped.push_back(follow_path(heap, *item, bound.at(0), bound.find_some(1)));
  return heap.iterator("generator", std::move(mapped));
}

Value map(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  if (!truth(input)) return interpreter.heap().iterator("generator", {});
  if (arguments.positional.empty()) {
    for (const auto& [name, value] : arguments.named) {
      if (name == "attribute") return map_attribute(interpreter, input, arguments);
    }
    fail_render("map requires a filter argument");
  }
  const std::string_view filter = callable_name(arguments.positional[0], "filter");
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  std::vector<Value> mapped;
  ItemReader reader(interpreter.heap(), input);
  while (auto item = reader.next()) mapped.push_back(interpreter.apply_filter(filter, *item, rest));
  return interpreter.heap().iterator("generator", std::move(mapped));
}

// Keeps the items whose value (or attribute) passes the test, or those that do not.
Value select(Interpreter& interpreter, const Value& input, const Arguments& arguments, bool by_attribute,
             bool wanted) {
  Heap& heap = interpreter.heap();
  if (!truth(input)) return heap.iterator("generator", {});
  Arguments rest = arguments;
  Value path;
  if (by_attribute) {
    if (rest.positional.empty()) fail_render("missing parameter for attribute name");
    path = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
  }
  std::optional<Value> test;
  if (!rest.positional.empty()) {
    test = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
  }
  std::vector<Value> kept;
  ItemReader reader(heap, input);
  while (auto item = reader.next()) {
    const Value value = by_attribute ? follow_path(heap, *item, path) : *item;
    const bool passed =
        test ? interpreter.apply_test(callable_name(*test, "test"), value, rest) : truth(value);
    if (passed == wanted) kept.push_back(std::move(*item));
  }
  return heap.iterator("generator", std::move(kept));
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
