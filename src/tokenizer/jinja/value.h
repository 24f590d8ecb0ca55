// The values a template computes with: Python's, as far as templates see them. Internal to the template
// engine. Scalars and texts are held by value (texts share their bytes); lists, dicts and everything else
// with an identity belong to the Heap of one rendering and are freed together at its end, so that cycles do
// no harm. Thread safety: a Heap and its values belong to one rendering; texts of the syntax tree may be
// shared.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/jinja/budget.h"

namespace assay::tokenizer_internal::jinja {

// Python's integers have no bound; 128 bits hold everything that JSON and templates use. Overflow is an
// error.
__extension__ using Integer = __int128;

class Interpreter;
class Value;
struct Object;

struct None {};

// Why a value is undefined, told only when it is misused.
struct Undefined {
  std::shared_ptr<const std::string> reason;
  bool forbidden = false;  // an attribute the sandbox does not give out
};

struct TextBody {
  TextBody(std::string text, bool is_markup, Budget* owner);
  ~TextBody();
  TextBody(const TextBody&) = delete;
  TextBody& operator=(const TextBody&) = delete;

  const std::string bytes;
  const size_t length;   // in characters
  const bool markup;     // came out of `escape` or `safe`
  Budget* const budget;  // null for the constants of a template
};
using Text = std::shared_ptr<const TextBody>;

class Value {
 public:
  Value() = default;  // undefined, without a reason
  Value(None none) : data_(none) {}
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(bool value) : data_(value) {}
  Value(Integer value) : data_(value) {}
  Value(int value) : data_(Integer{value}) {}
  Value(size_t value) : data_(static_cast<Integer>(value)) {}
  Value(double value) : data_(value) {}
  Value(Text text) : data_(std::move(text)) {}
  template <std::derived_from<Object> T>
  Value(T* object) : data_(static_cast<Object*>(object)) {}
  template <class T>
    requires(!std::derived_from<T, Object>)
  Value(T*) = delete;  // no silent conversion of pointers to bool

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_text() const { return std::holds_alternative<Text>(data_); }

  const Undefined* undefined() const { return std::get_if<Undefined>(&data_); }
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const Integer* integer() const { return std::get_if<Integer>(&data_); }
  const double* real() const { return std::get_if<double>(&data_); }
  const TextBody* text() const {
    const Text* text = std::get_if<Text>(&data_);
    return text ? text->get() : nullptr;
  }
  Object* object() const {
    Object* const* object = std::get_if<Object*>(&data_);
    return object ? *object : nullptr;
  }
  // The object when it is of that class.
  template <class T>
  T* as() const {
    Object* found = object();
    return found ? dynamic_cast<T*>(found) : nullptr;
  }
  // Booleans count as integers, as in Python.
  std::optional<Integer> whole_number() const;
  // Booleans, integers and floats.
  std::optional<double> number() const;

 private:
  std::variant<Undefined, None, bool, Integer, double, Text, Object*> data_;
};

class Heap;

// Anything with an identity. `attribute` serves what is neither a list's nor a dict's method.
struct Object {
  Object() = default;
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  virtual std::string_view type_name() const = 0;
  virtual std::optional<Value> attribute(Heap& heap, std::string_view name);
  virtual std::string describe() const;  // how it prints when it has no value to show

  // Levels of containers inside. Bounded when a container is filled, so that recursion over values is as
  // well.
  int depth = 0;
};

enum class SequenceKind { kList, kTuple, kCount };

struct Sequence : Object {
  Sequence(SequenceKind sequence_kind, std::vector<Value> values)
      : kind(sequence_kind), items(std::move(values)) {}
  std::string_view type_name() const override { return kind == SequenceKind::kList ? "list" : "tuple"; }

  const SequenceKind kind;
  std::vector<Value> items;
};

// What groupby gives: a tuple whose parts have names.
struct Group : Sequence {
  Group(Value grouper, Value list) : Sequence(SequenceKind::kTuple, {std::move(grouper), std::move(list)}) {}
  std::optional<Value> attribute(Heap& heap, std::string_view name) override;
};

// Keeps insertion order, as Python does. Keys compare as in Python: 1, 1.0 and true are the same key.
struct Dict : Object {
  std::string_view type_name() const override { return "dict"; }
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(const Value& key, Value value);

  std::vector<std::pair<Value, Value>> entries;

 private:
  std::optional<size_t> index_of(const Value& key) const;
  // Hash of the key to its place, built once a dict is large enough to gain from it.
  std::unordered_multimap<size_t, size_t> places_;
};

enum class DictViewKind { kKeys, kValues, kItems, kCount };

struct DictView : Object {
  DictView(DictViewKind view_kind, const Dict* source) : kind(view_kind), dict(source) {}
  std::string_view type_name() const override;

  const DictViewKind kind;
  const Dict* const dict;
};

struct Range : Object {
  Range(Integer from, Integer to, Integer by, size_t count)
      : start(from), stop(to), step(by), length(count) {}
  std::string_view type_name() const override { return "range"; }
  std::optional<Value> attribute(Heap& heap, std::string_view name) override;
  Integer at(size_t index) const { return start + step * static_cast<Integer>(index); }

  const Integer start, stop, step;
  const size_t length;
};

// What a filter such as `map` gives: makes its items when they are read, for whoever reads them first.
struct Iterator : Object {
  using Produce = std::function<std::optional<Value>()>;  // nothing: the end

  Iterator(std::string_view name, Produce make_next) : type(name), produce(std::move(make_next)) {}
  std::string_view type_name() const override { return type; }
  std::string describe() const override { return "<" + std::string(type) + " object>"; }
  std::optional<Value> next();

  const std::string_view type;
  Produce produce;  // empty once it has ended
};

// namespace(): attributes that a template may set from inside a loop.
struct Namespace : Object {
  std::string_view type_name() const override { return "Namespace"; }
  std::optional<Value> attribute(Heap& heap, std::string_view name) override;

  Dict attributes;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Callable : Object {
  virtual Value call(Interpreter& interpreter, Arguments arguments) = 0;
};

class Heap {
 public:
  explicit Heap(Budget& budget) : budget_(budget) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Budget& budget() { return budget_; }

  template <class T, class... Args>
  T* make(Args&&... args) {
    budget_.take(sizeof(T) + sizeof(std::unique_ptr<Object>));
    auto owned = std::make_unique<T>(std::forward<Args>(args)...);
    T* made = owned.get();
    objects_.push_back(std::move(owned));
    return made;
  }
  Value text(std::string bytes, bool markup = false);
  Value list(std::vector<Value> items);
  Value tuple(std::vector<Value> items);
  Value iterator(std::string_view type, Iterator::Produce produce);
  // The same from a list that is made as a whole when the first item is read.
  Value iterator_over(std::string_view type, std::function<std::vector<Value>()> make_items);
  // Before a container takes `count` more values.
  void reserve_values(size_t count) { budget_.take(count * sizeof(Value)); }

 private:
  Budget& budget_;
  std::vector<std::unique_ptr<Object>> objects_;
};

// Notes that `container` now holds `item`; refuses what would nest too deep.
void deepen(Object& container, const Value& item);

// A text that belongs to the template itself.
Value constant_text(std::string bytes);
Value undefined_because(std::string reason);
// `'type object' has no attribute 'name'`
Value missing_attribute(const Value& object, std::string_view name);

// "str", "int", "dict", ... as Python names it.
std::string_view type_name(const Value& value);
bool truth(const Value& value);

}  // namespace assay::tokenizer_internal::jinja
