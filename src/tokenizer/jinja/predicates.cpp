// The tests that follow `is`.
#include <array>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/text.h"

namespace assay::tokenizer_internal::jinja {
namespace {

using SimpleTest = bool (*)(Heap& heap, const Value& value);
template <SimpleTest test>
bool simple(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("test", arguments, {}, 0);
  return test(interpreter.heap(), input);
}

using PairTest = bool (*)(Heap& heap, const Value& a, const Value& b);
template <PairTest test>
bool pair(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("test", arguments, {"other"}, 1);
  return test(interpreter.heap(), input, bound.at(0));
}

bool is_defined(Heap&, const Value& value) {
  return !value.is_undefined();
}
bool is_undefined(Heap&, const Value& value) {
  return value.is_undefined();
}
bool is_none(Heap&, const Value& value) {
  return value.is_none();
}
bool is_boolean(Heap&, const Value& value) {
  return value.boolean() != nullptr;
}
bool is_true(Heap&, const Value& value) {
  return value.boolean() && *value.boolean();
}
bool is_false(Heap&, const Value& value) {
  return value.boolean() && !*value.boolean();
}
bool is_integer(Heap&, const Value& value) {
  return value.integer() != nullptr;
}
bool is_float(Heap&, const Value& value) {
  return value.real() != nullptr;
}
bool is_number(Heap&, const Value& value) {
  return value.number().has_value();
}
bool is_string(Heap&, const Value& value) {
  return value.is_text();
}
bool is_mapping(Heap&, const Value& value) {
  return value.as<Dict>() != nullptr;
}
bool is_sequence(Heap&, const Value& value) {
  return find_length(value).has_value() && !value.as<DictView>();
}
bool is_iterable_value(Heap&, const Value& value) {
  return is_iterable(value);
}
bool is_callable(Heap&, const Value& value) {
  return value.as<Callable>() || value.is_undefined();
}
bool is_escaped(Heap&, const Value& value) {
  return value.text() && value.text()->markup;
}
bool is_lower(Heap& heap, const Value& value) {
  return is_cased_as(print(heap, value), false);
}
bool is_upper(Heap& heap, const Value& value) {
  return is_cased_as(print(heap, value), true);
}
bool is_filter(Heap& heap, const Value& value) {
  heap.make<Dict>()->find(value);  // refuses what cannot be a key, as a look-up in Python does
  return value.text() && find_filter(value.text()->bytes);
}
bool is_test(Heap& heap, const Value& value) {
  heap.make<Dict>()->find(value);  // refuses what cannot be a key, as a look-up in Python does
  return value.text() && find_test(value.text()->bytes);
}

bool has_remainder(Heap& heap, const Value& value, const Value& divisor, int remainder) {
  return equal(heap, compute(heap, BinaryOperator::kModulo, value, divisor), remainder);
}
bool is_odd(Heap& heap, const Value& value) {
  return has_remainder(heap, value, 2, 1);
}
bool is_even(Heap& heap, const Value& value) {
  return has_remainder(heap, value, 2, 0);
}
bool is_divisible(Heap& heap, const Value& value, const Value& by) {
  return has_remainder(heap, value, by, 0);
}

bool is_same(Heap&, const Value& a, const Value& b) {
  return identical(a, b);
}
bool is_in(Heap& heap, const Value& a, const Value& b) {
  return contains(heap, b, a);
}
bool is_equal(Heap& heap, const Value& a, const Value& b) {
  return equal(heap, a, b);
}
bool is_not_equal(Heap& heap, const Value& a, const Value& b) {
  return !equal(heap, a, b);
}
bool is_less(Heap& heap, const Value& a, const Value& b) {
  return less(heap, a, b);
}
bool is_greater(Heap& heap, const Value& a, const Value& b) {
  return less(heap, b, a);
}
bool is_at_most(Heap& heap, const Value& a, const Value& b) {
  return less(heap, a, b) || equal(heap, a, b);
}
bool is_at_least(Heap& heap, const Value& a, const Value& b) {
  return less(heap, b, a) || equal(heap, a, b);
}

struct TestEntry {
  std::string_view name;
  TestFunction function;
};
constexpr std::array<TestEntry, 39> kTests = {{{"defined", simple<is_defined>},
                                               {"undefined", simple<is_undefined>},
                                               {"none", simple<is_none>},
                                               {"boolean", simple<is_boolean>},
                                               {"true", simple<is_true>},
                                               {"false", simple<is_false>},
                                               {"integer", simple<is_integer>},
                                               {"float", simple<is_float>},
                                               {"number", simple<is_number>},
                                               {"string", simple<is_string>},
                                               {"mapping", simple<is_mapping>},
                                               {"sequence", simple<is_sequence>},
                                               {"iterable", simple<is_iterable_value>},
                                               {"callable", simple<is_callable>},
                                               {"escaped", simple<is_escaped>},
                                               {"lower", simple<is_lower>},
                                               {"upper", simple<is_upper>},
                                               {"filter", simple<is_filter>},
                                               {"test", simple<is_test>},
                                               {"odd", simple<is_odd>},
                                               {"even", simple<is_even>},
                                               {"divisibleby", pair<is_divisible>},
                                               {"sameas", pair<is_same>},
                                               {"in", pair<is_in>},
                                               {"eq", pair<is_equal>},
                                               {"equalto", pair<is_equal>},
                                               {"==", pair<is_equal>},
                                               {"ne", pair<is_not_equal>},
                                               {"!=", pair<is_not_equal>},
                                               {"lt", pair<is_less>},
                                               {"lessthan", pair<is_less>},
                                               {"<", pair<is_less>},
                                               {"le", pair<is_at_most>},
                                               {"<=", pair<is_at_most>},
                                               {"gt", pair<is_greater>},
                                               {"greaterthan", pair<is_greater>},
                                               {">", pair<is_greater>},
                                               {"ge", pair<is_at_least>},
                                               {">=", pair<is_at_least>}}};

}  // namespace

TestFunction find_test(std::string_view name) {
  for (const TestEntry& test : kTests) {
    if (test.name == name) return test.function;
  }
  return nullptr;
}

}  // namespace assay::tokenizer_internal::jinja
