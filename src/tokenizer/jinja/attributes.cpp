// object.name, object[key] and object[a:b:c].
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

Value forbidden_attribute(const Value& object, std::string_view name) {
  Undefined undefined;
  undefined.reason = std::make_shared<const std::string>(
      fmt::format("access to attribute '{}' of '{}' object is unsafe", name, type_name(object)));
  undefined.forbidden = true;
  return undefined;
}

// What would change a list or dict, as ImmutableSandboxedEnvironment has it.
bool modifies(const Value& object, std::string_view name) {
  static constexpr std::array<std::string_view, 6> kList = {"append", "reverse", "insert",
                                                            "sort",   "extend",  "remove"};
  static constexpr std::array<std::string_view, 5> kDict = {"clear", "pop", "popitem", "setdefault",
                                                            "update"};
  const auto* sequence = object.as<Sequence>();
  if (sequence && sequence->kind == SequenceKind::kList) return std::ranges::find(kList, name) != kList.end();
  return object.as<Dict>() && std::ranges::find(kDict, name) != kDict.end();
}

bool is_internal(std::string_view name) {
  return name.size() > 4 && name.starts_with("__") && name.ends_with("__");
}

// A Python attribute proper, before items are looked at.
std::optional<Value> find_attribute(Heap& heap, const Value& object, std::string_view name) {
  if (is_internal(name) || modifies(object, name)) return forbidden_attribute(object, name);
  if (object.is_text()) return find_text_method(heap, object, name);
  if (!object.object()) return std::nullopt;
  if (auto found = object.object()->attribute(heap, name)) return found;
  return find_container_method(heap, object, name);
}

// The index as an offset from the front, or nothing when it is out of range.
std::optional<size_t> resolve_index(const Value& key, size_t length) {
  auto index = key.whole_number();
  if (!index) return std::nullopt;
  if (*index < 0) *index += static_cast<Integer>(length);
  if (*index < 0 || *index >= static_cast<Integer>(length)) return std::nullopt;
  return static_cast<size_t>(*index);
}

bool is_hashable(const Value& value) {
  if (value.as<Dict>()) return false;
  const auto* sequence = value.as<Sequence>();
  if (!sequence) return true;
  return sequence->kind == SequenceKind::kTuple && std::ranges::all_of(sequence->items, is_hashable);
}

std::optional<Value> find_item(Heap& heap, const Value& object, const Value& key) {
  if (const auto* dict = object.as<Dict>()) {
    if (!is_hashable(key)) return std::nullopt;
    const Value* found = dict->find(key);
    return found ? std::optional<Value>(*found) : std::nullopt;
  }
  if (const auto* sequence = object.as<Sequence>()) {
    auto index = resolve_index(key, sequence->items.size());
    return index ? std::optional<Value>(sequence->items[*index]) : std::nullopt;
  }
  if (const TextBody* text = object.text()) {
    auto index = resolve_index(key, text->length);
    if (!index) return std::nullopt;
    heap.budget().spend_bytes(text->bytes.size());
    const bool one_byte_each = text->length == text->bytes.size();
    const size_t begin = one_byte_each ? *index : character_offset(text->bytes, *index);
    size_t end = begin;
    decode_character(text->bytes, end);
    return heap.text(text->bytes.substr(begin, end - begin), text->markup);
  }
  if (const auto* range = object.as<Range>()) {
    auto index = resolve_index(key, range->length);
    return index ? std::optional<Value>(range->at(*index)) : std::nullopt;
  }
  return std::nullopt;
}

struct SliceBounds {
  Integer start, stop, step;
};

std::optional<Integer> slice_part(const Value& value) {
  if (value.is_none()) return std::nullopt;
  require_defined(value);
  auto number = value.whole_number();
  if (!number) fail_render("slice indices must be integers or none, not {}", type_name(value));
  return number;
}

// Python's slice.indices().
SliceBounds resolve_slice(const Value& start, const Value& stop, const Value& step, size_t size) {
  const auto length = static_cast<Integer>(size);
  const Integer by = slice_part(step).value_or(1);
  if (by == 0) fail_render("slice step cannot be zero");
  const Integer lowest = by < 0 ? -1 : 0, highest = by < 0 ? length - 1 : length;
  const auto clamp = [&](std::optional<Integer> part, Integer fallback) {
    if (!part) return fallback;
    const Integer index = *part < 0 ? *part + length : *part;
    return std::clamp(index, lowest, highest);
  };
  return {clamp(slice_part(start), by < 0 ? highest : lowest),
          clamp(slice_part(stop), by < 0 ? lowest : highest), by};
}

// Calls `take(index)` for each index of the slice.
template <class Take>
void for_each_index(const SliceBounds& bounds, const Take& take) {
  const auto inside = [&](Integer i) { return bounds.step > 0 ? i < bounds.stop : i > bounds.stop; };
  for (Integer i = bounds.start; inside(i); i += bounds.step) {
    take(static_cast<size_t>(i));
    // A step far larger than any text must not overflow the index.
    if (bounds.step > Integer{kMaxHeapBytes} || bounds.step < -Integer{kMaxHeapBytes}) break;
  }
}

Value slice_text(Heap& heap, const TextBody& text, const SliceBounds& bounds) {
  heap.budget().spend_bytes(text.bytes.size());
  if (bounds.step == 1) {
    if (bounds.start >= bounds.stop) return heap.text("", text.markup);
    const size_t begin = character_offset(text.bytes, static_cast<size_t>(bounds.start));
    const std::string_view rest = std::string_view(text.bytes).substr(begin);
    const size_t size = character_offset(rest, static_cast<size_t>(bounds.stop - bounds.start));
    return heap.text(std::string(rest.substr(0, size)), text.markup);
  }
  std::vector<size_t> offsets;
  for (size_t i = 0; i < text.bytes.size(); decode_character(text.bytes, i)) offsets.push_back(i);
  offsets.push_back(text.bytes.size());
  std::string out;
  for_each_index(bounds, [&](size_t i) { out.append(text.bytes, offsets[i], offsets[i + 1] - offsets[i]); });
  return heap.text(std::move(out), text.markup);
}

}  // namespace

Value get_attribute(Heap& heap, const Value& object, std::string_view name) {
  require_defined(object);
  heap.budget().spend();
  if (auto found = find_attribute(heap, object, name)) return *found;
  if (const auto* dict = object.as<Dict>()) {
    if (const Value* found = dict->find(name)) return *found;
  }
  return missing_attribute(object, name);
}

Value get_item(Heap& heap, const Value& object, const Value& key) {
  require_defined(object);
  heap.budget().spend();
  if (auto found = find_item(heap, object, key)) return *found;
  if (const TextBody* name = key.text()) {
    if (auto found = find_attribute(heap, object, name->bytes)) return *found;
    return missing_attribute(object, name->bytes);
  }
  return undefined_because(
      fmt::format("{} object has no element {}", type_name(object), print_quoted(heap, key)));
}

Value follow_path(Heap& heap, const Value& object, const Value& path, const Value* fallback) {
  const auto step = [&](const Value& from, const Value& key) {
    const Value found = get_item(heap, from, key);
    return fallback && found.is_undefined() ? *fallback : found;
  };
  if (path.is_none()) return object;
  if (!path.text()) return step(object, path);
  Value current = object;
  std::string_view rest = path.text()->bytes;
  for (bool more = true; more;) {
    const size_t dot = rest.find('.');
    more = dot != std::string_view::npos;
    const std::string_view part = rest.substr(0, dot);
    const bool is_index =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
    current = step(current, is_index ? Value(std::stoi(std::string(part))) : heap.text(std::string(part)));
    if (more) rest.remove_prefix(dot + 1);
  }
  return current;
}

Value get_slice(Heap& heap, const Value& object, const Value& start, const Value& stop, const Value& step) {
  require_defined(object);
  if (const TextBody* text = object.text()) {
    return slice_text(heap, *text, resolve_slice(start, stop, step, text->length));
  }
  if (const auto* sequence = object.as<Sequence>()) {
    std::vector<Value> items;
    const SliceBounds bounds = resolve_slice(start, stop, step, sequence->items.size());
    heap.budget().spend(sequence->items.size());
    for_each_index(bounds, [&](size_t i) { items.push_back(sequence->items[i]); });
    return sequence->kind == SequenceKind::kList ? heap.list(std::move(items)) : heap.tuple(std::move(items));
  }
  if (const auto* range = object.as<Range>()) {
    const SliceBounds bounds = resolve_slice(start, stop, step, range->length);
    size_t count = 0;
    for_each_index(bounds, [&](size_t) { ++count; });
    return heap.make<Range>(range->start + range->step * bounds.start,
                            range->start + range->step * bounds.stop, range->step * bounds.step, count);
  }
  fail_render("'{}' object cannot be sliced", type_name(object));
}

}  // namespace assay::tokenizer_internal::jinja
