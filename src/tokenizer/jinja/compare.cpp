// Equality, order, membership and length of Python values.
#include <algorithm>

#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

bool equal_items(Heap& heap, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(heap, a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(Heap& heap, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    heap.budget().spend(b.entries.size() < 16 ? b.entries.size() : 1);
    const Value* other = b.find(key);
    if (!other || !equal(heap, value, *other)) return false;
  }
  return true;
}

bool equal_ranges(const Range& a, const Range& b) {
  if (a.length != b.length) return false;
  return a.length == 0 || (a.start == b.start && (a.length == 1 || a.step == b.step));
}

bool less_items(Heap& heap, const std::vector<Value>& a, const std::vector<Value>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!equal(heap, a[i], b[i])) return less(heap, a[i], b[i]);
  }
  return a.size() < b.size();
}

bool contains_text(Heap& heap, const TextBody& container, const Value& item) {
  const TextBody* part = item.text();
  if (!part) {
    fail_render("'in <string>' requires string as left operand, not {}", type_name(item));
  }
  heap.budget().spend_bytes(container.bytes.size());
  return container.bytes.find(part->bytes) != std::string::npos;
}

}  // namespace

void fail_undefined(const Undefined& undefined) {
  fail_render("{}", undefined.reason ? *undefined.reason : "value is undefined");
}

void require_defined(const Value& value) {
  if (const Undefined* undefined = value.undefined()) fail_undefined(*undefined);
}

bool equal(Heap& heap, const Value& a, const Value& b) {
  heap.budget().spend();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.text() || b.text()) {
    if (!a.text() || !b.text()) return false;
    heap.budget().spend_bytes(a.text()->bytes.size());
    return a.text()->bytes == b.text()->bytes;
  }
  if (a.whole_number() && b.whole_number()) return *a.whole_number() == *b.whole_number();
  if (a.number() || b.number()) return a.number() && b.number() && *a.number() == *b.number();
  if (a.object() == b.object()) return true;
  if (const auto *x = a.as<Sequence>(), *y = b.as<Sequence>(); x && y) {
    return x->kind == y->kind && equal_items(heap, x->items, y->items);
  }
  if (const auto *x = a.as<Dict>(), *y = b.as<Dict>(); x && y) return equal_dicts(heap, *x, *y);
  if (const auto *x = a.as<Range>(), *y = b.as<Range>(); x && y) return equal_ranges(*x, *y);
  return false;
}

bool less(Heap& heap, const Value& a, const Value& b) {
  heap.budget().spend();
  require_defined(a);
  require_defined(b);
  if (a.whole_number() && b.whole_number()) return *a.whole_number() < *b.whole_number();
  if (a.number() && b.number()) return *a.number() < *b.number();
  if (a.text() && b.text()) {
    heap.budget().spend_bytes(std::min(a.text()->bytes.size(), b.text()->bytes.size()));
    return a.text()->bytes < b.text()->bytes;  // the order of UTF-8 bytes is that of characters
  }
  if (const auto *x = a.as<Sequence>(), *y = b.as<Sequence>(); x && y && x->kind == y->kind) {
    return less_items(heap, x->items, y->items);
  }
  fail_render("'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b));
}

bool identical(const Value& a, const Value& b) {
  if (a.object() || b.object()) return a.object() == b.object();
  if (a.is_undefined() || b.is_undefined()) return false;
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.boolean() || b.boolean()) return a.boolean() && b.boolean() && *a.boolean() == *b.boolean();
  if (a.integer() && b.integer()) return *a.integer() == *b.integer();
  if (a.text() && b.text()) return a.text() == b.text() || a.text()->bytes == b.text()->bytes;
  return a.real() && b.real() && *a.real() == *b.real();
}

bool contains(Heap& heap, const Value& container, const Value& item) {
  if (const TextBody* text = container.text()) return contains_text(heap, *text, item);
  if (const auto* dict = container.as<Dict>()) {
    heap.budget().spend();
    return dict->find(item) != nullptr;
  }
  if (!is_iterable(container)) fail_render("argument of type '{}' is not iterable", type_name(container));
  ItemReader reader(heap, container);
  while (auto candidate = reader.next()) {
    if (identical(*candidate, item) || equal(heap, *candidate, item)) return true;
  }
  return false;
}

std::optional<size_t> find_length(const Value& value) {
  if (value.is_undefined()) return 0;
  if (const TextBody* text = value.text()) return text->length;
  if (const auto* sequence = value.as<Sequence>()) return sequence->items.size();
  if (const auto* dict = value.as<Dict>()) return dict->entries.size();
  if (const auto* view = value.as<DictView>()) return view->dict->entries.size();
  if (const auto* range = value.as<Range>()) return range->length;
  return std::nullopt;
}

size_t length_of(const Value& value) {
  if (auto length = find_length(value)) return *length;
  fail_render("object of type '{}' has no len()", type_name(value));
}

ItemReader::ItemReader(Heap& heap, Value iterable) : heap_(heap), iterable_(std::move(iterable)) {
  if (!is_iterable(iterable_)) fail_render("'{}' object is not iterable", type_name(iterable_));
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_text() || value.as<Sequence>() || value.as<Dict>() ||
         value.as<DictView>() || value.as<Range>() || value.as<Iterator>();
}

std::optional<Value> ItemReader::next() {
  heap_.budget().spend();
  if (const TextBody* text = iterable_.text()) {
    if (position_ >= text->bytes.size()) return std::nullopt;
    const size_t begin = position_;
    decode_character(text->bytes, position_);
    return heap_.text(text->bytes.substr(begin, position_ - begin), text->markup);
  }
  if (const auto* sequence = iterable_.as<Sequence>()) {
    if (position_ >= sequence->items.size()) return std::nullopt;
    return sequence->items[position_++];
  }
  if (const auto* dict = iterable_.as<Dict>()) {
    if (position_ >= dict->entries.size()) return std::nullopt;
    return dict->entries[position_++].first;
  }
  if (const auto* view = iterable_.as<DictView>()) {
    if (position_ >= view->dict->entries.size()) return std::nullopt;
    const auto& [key, value] = view->dict->entries[position_++];
    if (view->kind == DictViewKind::kItems) return heap_.tuple({key, value});
    return view->kind == DictViewKind::kKeys ? key : value;
  }
  if (const auto* range = iterable_.as<Range>()) {
    if (position_ >= range->length) return std::nullopt;
    return range->at(position_++);
  }
  if (auto* iterator = iterable_.as<Iterator>()) {
    const DepthGuard guard(heap_.budget());  // iterators over iterators over ...
    return iterator->next();
  }
  return std::nullopt;  // undefined: an empty sequence
}

std::vector<Value> collect(Heap& heap, const Value& iterable) {
  std::vector<Value> items;
  ItemReader reader(heap, iterable);
  while (auto item = reader.next()) {
    if ((items.size() & (items.size() - 1)) == 0) heap.budget().spend(1 + items.size() / 64);
    items.push_back(std::move(*item));
  }
  return items;
}

}  // namespace assay::tokenizer_internal::jinja
