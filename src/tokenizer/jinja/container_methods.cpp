// Methods of lists, tuples and dicts.
#include <array>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/bound.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operations.h"

namespace assay::tokenizer_internal::jinja {
namespace {

struct Method {
  std::string_view name;
  MethodFunction function;
};

Value count_items(Interpreter& interpreter, Value& self, const Arguments& arguments) {
  const BoundArguments bound("count", arguments, {"value"}, 1);
  Integer count = 0;
  for (const Value& item : collect(interpreter.heap(), self)) {
    if (equal(interpreter.heap(), item, bound.at(0))) ++count;
  }
  return count;
}

Value find_index(Interpreter& interpreter, Value& self, const Arguments& arguments) {
  const BoundArguments bound("index", arguments, {"value", "start", "stop"}, 1);
  const std::vector<Value> items = collect(interpreter.heap(), self);
  const auto length = static_cast<Integer>(items.size());
  const auto from_front = [&](Integer index) {
    return index < 0 ? std::max<Integer>(index + length, 0) : index;
  };
  const Integer start = from_front(bound.integer_or(1, 0));
  const Integer stop = std::min(from_front(bound.integer_or(2, length)), length);
  for (Integer i = start; i < stop; ++i) {
    if (equal(interpreter.heap(), items[static_cast<size_t>(i)], bound.at(0))) return i;
  }
  fail_render("{} is not in list", print_quoted(interpreter.heap(), bound.at(0)));
}

Value copy_list(Interpreter& interpreter, Value& self, const Arguments& arguments) {
  const BoundArguments bound("copy", arguments, {}, 0);
  return interpreter.heap().list(self.as<Sequence>()->items);
}

// Jinja's sandbox lets a list shrink, though not grow.
Value pop_item(Interpreter&, Value& self, const Arguments& arguments) {
  const BoundArguments bound("pop", arguments, {"index"}, 0);
  auto& items = self.as<Sequence>()->items;
  const auto length = static_cast<Integer>(items.size());
  Integer index = bound.integer_or(0, -1);
  if (index < 0) index += length;
  if (index < 0 || index >= length) fail_render("pop index out of range");
  const auto position = items.begin() + static_cast<std::ptrdiff_t>(index);
  Value item = std::move(*position);
  items.erase(position);
  return item;
}

Value clear_list(Interpreter&, Value& self, const Arguments& arguments) {
  const BoundArguments bound("clear", arguments, {}, 0);
  self.as<Sequence>()->items.clear();
  return None{};
}

Value get_value(Interpreter&, Value& self, const Arguments& arguments) {
  const BoundArguments bound("get", arguments, {"key", "default"}, 1);
  if (const Value* found = self.as<Dict>()->find(bound.at(0))) return *found;
  return bound.find(1) ? bound.at(1) : Value(None{});
}

template <DictViewKind kind>
Value make_view(Interpreter& interpreter, Value& self, const Arguments& arguments) {
  const BoundArguments bound("view", arguments, {}, 0);
  auto* view = interpreter.heap().make<DictView>(kind, self.as<Dict>());
  deepen(*view, self);
  return view;
}

Value copy_dict(Interpreter& interpreter, Value& self, const Arguments& arguments) {
  const BoundArguments bound("copy", arguments, {}, 0);
  Dict* copy = interpreter.heap().make<Dict>();
  const auto& entries = self.as<Dict>()->entries;
  interpreter.heap().reserve_values(2 * entries.size());
  for (const auto& [key, value] : entries) {
    interpreter.heap().budget().spend();
    copy->set(key, value);
  }
  return copy;
}

constexpr std::array<Method, 2> kSequenceMethods = {{{"count", count_items}, {"index", find_index}}};
constexpr std::array<Method, 3> kListMethods = {
    {{"copy", copy_list}, {"pop", pop_item}, {"clear", clear_list}}};
constexpr std::array<Method, 5> kDictMethods = {{{"get", get_value},
                                                 {"items", make_view<DictViewKind::kItems>},
                                                 {"keys", make_view<DictViewKind::kKeys>},
                                                 {"values", make_view<DictViewKind::kValues>},
                                                 {"copy", copy_dict}}};

template <size_t n>
std::optional<Value> find_in(Heap& heap, const std::array<Method, n>& methods, const Value& object,
                             std::string_view name) {
  for (const Method& method : methods) {
    if (method.name == name) return bind_method(heap, method.name, object, method.function);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Value> find_container_method(Heap& heap, const Value& object, std::string_view name) {
  if (object.as<Dict>()) return find_in(heap, kDictMethods, object, name);
  if (object.as<Range>()) return find_in(heap, kSequenceMethods, object, name);
  const auto* sequence = object.as<Sequence>();
  if (!sequence) return std::nullopt;
  if (auto found = find_in(heap, kSequenceMethods, object, name)) return found;
  return sequence->kind == SequenceKind::kList ? find_in(heap, kListMethods, object, name) : std::nullopt;
}

}  // namespace assay::tokenizer_internal::jinja
