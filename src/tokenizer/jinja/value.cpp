#include "tokenizer/jinja/value.h"

#include <fmt/core.h>

#include <cmath>
#include <functional>

#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

constexpr size_t kIndexedFrom = 16;  // smaller dicts are searched from front to back

size_t combine(size_t seed, size_t hash) {
  return seed * 1099511628211ULL + hash;
}

size_t hash_key(const Value& key) {
  if (const TextBody* text = key.text()) return std::hash<std::string_view>{}(text->bytes);
  if (auto number = key.number()) return std::hash<double>{}(*number);
  if (key.is_none() || key.is_undefined()) return key.is_none() ? 1 : 2;
  if (const auto* sequence = key.as<Sequence>(); sequence && sequence->kind == SequenceKind::kTuple) {
    size_t hash = 3;
    for (const Value& item : sequence->items) hash = combine(hash, hash_key(item));
    return hash;
  }
  if (key.as<Sequence>() || key.as<Dict>()) fail_render("a {} cannot be a dict's key", type_name(key));
  return std::hash<Object*>{}(key.object());
}

bool same_key(const Value& a, const Value& b) {
  if (a.text() && b.text()) return a.text()->bytes == b.text()->bytes;
  if (a.whole_number() && b.whole_number()) return *a.whole_number() == *b.whole_number();
  if (a.number() && b.number()) return *a.number() == *b.number();
  if (a.is_none() || a.is_undefined())
    return a.is_none() == b.is_none() && a.is_undefined() == b.is_undefined();
  const auto *left = a.as<Sequence>(), *right = b.as<Sequence>();
  if (left && right) {
    if (left->items.size() != right->items.size()) return false;
    for (size_t i = 0; i < left->items.size(); ++i) {
      if (!same_key(left->items[i], right->items[i])) return false;
    }
    return true;
  }
  return a.object() && a.object() == b.object();
}

}  // namespace

TextBody::TextBody(std::string text, bool is_markup, Budget* owner)
    : bytes(std::move(text)), length(count_characters(bytes)), markup(is_markup), budget(owner) {}

TextBody::~TextBody() {
  if (budget) budget->release(sizeof(TextBody) + bytes.size());
}

std::optional<Integer> Value::whole_number() const {
  if (const bool* value = boolean()) return Integer{*value ? 1 : 0};
  if (const Integer* value = integer()) return *value;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (auto whole = whole_number()) return static_cast<double>(*whole);
  if (const double* value = real()) return *value;
  return std::nullopt;
}

std::optional<Value> Object::attribute(Heap&, std::string_view) {
  return std::nullopt;
}

std::string Object::describe() const {
  return fmt::format("<{} object>", type_name());
}

std::optional<Value> Group::attribute(Heap&, std::string_view name) {
  if (name == "grouper") return items[0];
  if (name == "list") return items[1];
  return std::nullopt;
}

std::optional<size_t> Dict::index_of(const Value& key) const {
  if (places_.empty()) {
    hash_key(key);  // refuses what cannot be a key, however small the dict
    for (size_t i = 0; i < entries.size(); ++i) {
      if (same_key(entries[i].first, key)) return i;
    }
    return std::nullopt;
  }
  auto [begin, end] = places_.equal_range(hash_key(key));
  for (; begin != end; ++begin) {
    if (same_key(entries[begin->second].first, key)) return begin->second;
  }
  return std::nullopt;
}

const Value* Dict::find(const Value& key) const {
  auto index = index_of(key);
  return index ? &entries[*index].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (places_.empty()) {
    for (const auto& [name, value] : entries) {
      if (name.text() && name.text()->bytes == key) return &value;
    }
    return nullptr;
  }
  auto [begin, end] = places_.equal_range(std::hash<std::string_view>{}(key));
  for (; begin != end; ++begin) {
    const auto& [name, value] = entries[begin->second];
    if (name.text() && name.text()->bytes == key) return &value;
  }
  return nullptr;
}

void Dict::set(const Value& key, Value value) {
  if (auto index = index_of(key)) {
    deepen(*this, value);
    entries[*index].second = std::move(value);
    return;
  }
  deepen(*this, key);
  deepen(*this, value);
  entries.emplace_back(key, std::move(value));
  if (!places_.empty()) {
    places_.emplace(hash_key(key), entries.size() - 1);
  } else if (entries.size() >= kIndexedFrom) {
    for (size_t i = 0; i < entries.size(); ++i) places_.emplace(hash_key(entries[i].first), i);
  }
}

std::string_view DictView::type_name() const {
  switch (kind) {
    case DictViewKind::kKeys:
      return "dict_keys";
    case DictViewKind::kValues:
      return "dict_values";
    case DictViewKind::kItems:
      return "dict_items";
    case DictViewKind::kCount:
      break;
  }
  return "dict_view";
}

std::optional<Value> Range::attribute(Heap&, std::string_view name) {
  if (name == "start") return Value(start);
  if (name == "stop") return Value(stop);
  if (name == "step") return Value(step);
  return std::nullopt;
}

std::optional<Value> Iterator::next() {
  if (!produce) return std::nullopt;
  std::optional<Value> item = produce();
  if (!item) produce = nullptr;
  return item;
}

std::optional<Value> Namespace::attribute(Heap&, std::string_view name) {
  const Value* found = attributes.find(name);
  return found ? std::optional<Value>(*found) : std::nullopt;
}

Value Heap::text(std::string bytes, bool markup) {
  budget_.spend_bytes(bytes.size());
  budget_.take(sizeof(TextBody) + bytes.size());
  return Text(std::make_shared<const TextBody>(std::move(bytes), markup, &budget_));
}

Value Heap::list(std::vector<Value> items) {
  reserve_values(items.size());
  auto* made = make<Sequence>(SequenceKind::kList, std::move(items));
  for (const Value& item : made->items) deepen(*made, item);
  return made;
}

Value Heap::tuple(std::vector<Value> items) {
  reserve_values(items.size());
  auto* made = make<Sequence>(SequenceKind::kTuple, std::move(items));
  for (const Value& item : made->items) deepen(*made, item);
  return made;
}

Value Heap::iterator(std::string_view type, Iterator::Produce produce) {
  return make<Iterator>(type, std::move(produce));
}

Value Heap::iterator_over(std::string_view type, std::function<std::vector<Value>()> make_items) {
  struct State {
    std::vector<Value> items;
    size_t next = 0;
    bool made = false;
  };
  return iterator(type,
                  [this, make = std::move(make_items), state = State{}]() mutable -> std::optional<Value> {
                    if (!std::exchange(state.made, true)) {
                      state.items = make();
                      reserve_values(state.items.size());
                    }
                    if (state.next >= state.items.size()) return std::nullopt;
                    return state.items[state.next++];
                  });
}

void deepen(Object& container, const Value& item) {
  const Object* inner = item.object();
  if (!inner || inner->depth < container.depth) return;
  if (inner->depth + 1 > kMaxValueDepth) fail_limit("values nest deeper than {} levels", kMaxValueDepth);
  container.depth = inner->depth + 1;
}

Value constant_text(std::string bytes) {
  return Text(std::make_shared<const TextBody>(std::move(bytes), false, nullptr));
}

Value undefined_because(std::string reason) {
  return Undefined{std::make_shared<const std::string>(std::move(reason)), false};
}

Value missing_attribute(const Value& object, std::string_view name) {
  std::string_view type = type_name(object);
  if (object.is_none()) return undefined_because(fmt::format("'None' has no attribute '{}'", name));
  return undefined_because(fmt::format("'{} object' has no attribute '{}'", type, name));
}

std::string_view type_name(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "NoneType";
  if (value.boolean()) return "bool";
  if (value.integer()) return "int";
  if (value.real()) return "float";
  if (const TextBody* text = value.text()) return text->markup ? "Markup" : "str";
  return value.object()->type_name();
}

bool truth(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (auto number = value.number()) return *number != 0;
  if (const TextBody* text = value.text()) return !text->bytes.empty();
  if (const auto* sequence = value.as<Sequence>()) return !sequence->items.empty();
  if (const auto* dict = value.as<Dict>()) return !dict->entries.empty();
  if (const auto* view = value.as<DictView>()) return !view->dict->entries.empty();
  if (const auto* range = value.as<Range>()) return range->length != 0;
  return true;
}

}  // namespace assay::tokenizer_internal::jinja
