// What Python's operators and built-ins do with values: printing, comparing, counting, iterating, arithmetic.
// Internal to the template engine. Failure: Failure with Python's reason. Every function charges the heap's
// budget for the work it does.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

// str(value) and repr(value).
std::string print(Heap& heap, const Value& value);
std::string print_quoted(Heap& heap, const Value& value);
std::string print_number(double value);  // repr(float): the shortest digits that read back the same
std::string print_integer(Integer value);
// The text of a text value, str(value) of any other.
Value as_text(Heap& heap, const Value& value);

bool equal(Heap& heap, const Value& a, const Value& b);
bool less(Heap& heap, const Value& a, const Value& b);  // a < b; refuses types that have no order
bool contains(Heap& heap, const Value& container, const Value& item);
bool identical(const Value& a, const Value& b);  // Python's `is`

// len(value)
std::optional<size_t> find_length(const Value& value);
size_t length_of(const Value& value);

// Yields the items of anything iterable; reading an Iterator consumes it.
class ItemReader {
 public:
  ItemReader(Heap& heap, Value iterable);
  std::optional<Value> next();

 private:
  Heap& heap_;
  Value iterable_;
  size_t position_ = 0;  // an index, or a byte offset in a text
};
bool is_iterable(const Value& value);
std::vector<Value> collect(Heap& heap, const Value& iterable);

enum class BinaryOperator { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower, kCount };
Value compute(Heap& heap, BinaryOperator op, const Value& a, const Value& b);
Value negate(const Value& value);
Value plus(const Value& value);

// object.name and object[key] with Jinja's rules: attribute and item stand in for each other, what is missing
// is undefined, and attributes that would change a list or dict are withheld, as in transformers' sandbox.
Value get_attribute(Heap& heap, const Value& object, std::string_view name);
Value get_item(Heap& heap, const Value& object, const Value& key);
Value get_slice(Heap& heap, const Value& object, const Value& start, const Value& stop, const Value& step);

// What filters do with `attribute="a.b.0"`: one item after the other; a whole number is an index. Where a
// part is missing it is `fallback`, when there is one.
Value follow_path(Heap& heap, const Value& object, const Value& path, const Value* fallback = nullptr);

// The method of a str, list, tuple or dict, bound to its object; nothing where Python has none of that name.
std::optional<Value> find_text_method(Heap& heap, const Value& object, std::string_view name);
std::optional<Value> find_container_method(Heap& heap, const Value& object, std::string_view name);

[[noreturn]] void fail_undefined(const Undefined& undefined);
// Refuses undefined values in operations that Jinja does not define for them.
void require_defined(const Value& value);

}  // namespace assay::tokenizer_internal::jinja
