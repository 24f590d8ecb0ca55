// Filters on sequences and dicts.
#include <algorithm>
#include <array>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/filter_table.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

Value fold_case(Heap& heap, const Value& value, bool case_sensitive) {
  const TextBody* text = value.text();
  return text && !case_sensitive ? heap.text(to_lower(text->bytes)) : value;
}

struct Keyed {
  Value key, item;
};

void sort_by_key(Heap& heap, std::vector<Keyed>& entries, bool reverse) {
  std::ranges::stable_sort(entries, [&](const Keyed& a, const Keyed& b) {
    return reverse ? less(heap, b.key, a.key) : less(heap, a.key, b.key);
  });
}

std::vector<Keyed> key_items(Heap& heap, const Value& input, const Value* path, bool case_sensitive,
                             const Value* fallback = nullptr) {
  std::vector<Keyed> entries;
  ItemReader reader(heap, input);
  while (auto item = reader.next()) {
    const Value key = path ? follow_path(heap, *item, *path, fallback) : *item;
    entries.push_back({fold_case(heap, key, case_sensitive), *item});
  }
  heap.reserve_values(2 * entries.size());
  return entries;
}

Value defaulted(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("default", arguments, {"default_value", "boolean"}, 0);
  if (!input.is_undefined() && !(bound.truth_or(1, false) && !truth(input))) return input;
  return bound.find(0) ? bound.at(0) : interpreter.heap().text("");
}

Value length(Interpreter&, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("length", arguments, {}, 0);
  return length_of(input);
}

Value first(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("first", arguments, {}, 0);
  ItemReader reader(interpreter.heap(), input);
  if (auto item = reader.next()) return *item;
  return undefined_because("no first item, sequence was empty");
}

// reversed(value), which needs to know where it ends.
std::vector<Value> reversed_items(Heap& heap, const Value& input) {
  std::vector<Value> items = collect(heap, input);
  std::ranges::reverse(items);
  return items;
}

Value last(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("last", arguments, {}, 0);
  if (const auto* sequence = input.as<Sequence>()) {
    if (!sequence->items.empty()) return sequence->items.back();
    return undefined_because("no last item, sequence was empty");
  }
  if (!find_length(input)) fail_render("'{}' object is not reversible", type_name(input));
  std::vector<Value> items = collect(interpreter.heap(), input);
  return items.empty() ? undefined_because("no last item, sequence was empty") : items.back();
}

Value list(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("list", arguments, {}, 0);
  return interpreter.heap().list(collect(interpreter.heap(), input));
}

Value reverse(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("reverse", arguments, {}, 0);
  Heap& heap = interpreter.heap();
  std::vector<Value> items = reversed_items(heap, input);
  if (const TextBody* text = input.text()) {
    std::string out;
    for (const Value& item : items) out += item.text()->bytes;
    return heap.text(std::move(out), text->markup);
  }
  if (!find_length(input)) return heap.list(std::move(items));
  return heap.iterator_over("reversed", [items] { return items; });
}

Value items(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("items", arguments, {}, 0);
  Heap& heap = interpreter.heap();
  return heap.iterator_over("generator", [&heap, input] {
    std::vector<Value> pairs;
    if (input.is_undefined()) return pairs;
    const auto* dict = input.as<Dict>();
    if (!dict) fail_render("can only get item pairs from a mapping, not from {}", type_name(input));
    for (const auto& [key, value] : dict->entries) pairs.push_back(heap.tuple({key, value}));
    return pairs;
  });
}

// A list of the item's attributes (commas between them), or of the item alone. Lists compare their first
// difference, so that equal keys need no order.
Value sort_key(Heap& heap, const Value& item, const Value* path, bool case_sensitive) {
  if (!path) return heap.list({fold_case(heap, item, case_sensitive)});
  if (!path->text()) return heap.list({fold_case(heap, follow_path(heap, item, *path), case_sensitive)});
  std::vector<Value> keys;
  std::string_view rest = path->text()->bytes;
  for (bool more = true; more;) {
    const size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const Value part = heap.text(std::string(rest.substr(0, comma)));
    keys.push_back(fold_case(heap, follow_path(heap, item, part), case_sensitive));
    if (more) rest.remove_prefix(comma + 1);
  }
  return heap.list(std::move(keys));
}

Value sort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0);
  Heap& heap = interpreter.heap();
  std::vector<Keyed> entries;
  ItemReader reader(heap, input);
  while (auto item = reader.next()) {
    entries.push_back({sort_key(heap, *item, bound.find_some(2), bound.truth_or(1, false)), *item});
  }
  sort_by_key(heap, entries, bound.truth_or(0, false));
  std::vector<Value> sorted;
  for (Keyed& entry : entries) sorted.push_back(std::move(entry.item));
  return heap.list(std::move(sorted));
}

Value dictsort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0);
  Heap& heap = interpreter.heap();
  require_defined(input);
  const auto* dict = input.as<Dict>();
  if (!dict) fail_render("dictsort takes a mapping, not {}", type_name(input));
  const std::string_view by = bound.find(1) ? bound.text(1) : "key";
  if (by != "key" && by != "value") fail_render("dictsort: 'by' must be key or value");
  std::vector<Keyed> entries;
  for (const auto& [key, value] : dict->entries) {
    const Value& sorted_by = by == "key" ? key : value;
    entries.push_back({fold_case(heap, sorted_by, bound.truth_or(0, false)), heap.tuple({key, value})});
  }
  sort_by_key(heap, entries, bound.truth_or(2, false));
  std::vector<Value> sorted;
  for (Keyed& entry : entries) sorted.push_back(std::move(entry.item));
  return heap.list(std::move(sorted));
}

std::vector<Value> unique_items(Heap& heap, const Value& input, const Value* path, bool case_sensitive) {
  Dict* seen = heap.make<Dict>();
  std::vector<Value> kept;
  for (Keyed& entry : key_items(heap, input, path, case_sensitive)) {
    heap.budget().spend();
    if (seen->find(entry.key)) continue;
    heap.reserve_values(2);
    seen->set(entry.key, None{});
    kept.push_back(std::move(entry.item));
  }
  return kept;
}

Value unique(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("unique", arguments, {"case_sensitive", "attribute"}, 0);
  const Value path = bound.find(1) ? bound.at(1) : Value(None{});
  return interpreter.heap().iterator_over(
      "generator", [&heap = interpreter.heap(), input, path, case_sensitive = bound.truth_or(0, false)] {
        return unique_items(heap, input, path.is_none() ? nullptr : &path, case_sensitive);
      });
}

template <bool want_max>
Value extreme(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound(want_max ? "max" : "min", arguments, {"case_sensitive", "attribute"}, 0);
  Heap& heap = interpreter.heap();
  std::vector<Keyed> entries = key_items(heap, input, bound.find_some(1), bound.truth_or(0, false));
  if (entries.empty()) return undefined_because("no aggregated item, sequence was empty");
  const Keyed* best = &entries.front();
  for (size_t i = 1; i < entries.size(); ++i) {
    const bool better =
        want_max ? less(heap, best->key, entries[i].key) : less(heap, entries[i].key, best->key);
    if (better) best = &entries[i];
  }
  return best->item;
}

Value group_by(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  Heap& heap = interpreter.heap();
  const Value* fallback = bound.find_some(1);
  std::vector<Keyed> entries = key_items(heap, input, &bound.at(0), bound.truth_or(2, false), fallback);
  sort_by_key(heap, entries, false);
  std::vector<Value> groups;
  for (size_t begin = 0; begin < entries.size();) {
    std::vector<Value> members;
    size_t end = begin;
    for (; end < entries.size() && equal(heap, entries[begin].key, entries[end].key); ++end) {
      members.push_back(entries[end].item);
    }
    if (end == begin) ++end;  // a key that does not equal itself (nan) stands alone
    const Value name = follow_path(heap, entries[begin].item, bound.at(0), fallback);
    const Value list = heap.list(std::move(members));
    Group* group = heap.make<Group>(name, list);
    deepen(*group, list);
    groups.push_back(group);
    begin = end;
  }
  return heap.list(std::move(groups));
}

std::vector<Value> make_batches(Heap& heap, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("batch", arguments, {"linecount", "fill_with"}, 1);
  const Value& size = bound.at(0);
  std::vector<Value> rows, row;
  ItemReader reader(heap, input);
  while (auto item = reader.next()) {
    if (equal(heap, row.size(), size)) rows.push_back(heap.list(std::exchange(row, {})));
    row.push_back(*item);
  }
  if (row.empty()) return rows;
  if (bound.find_some(1) && less(heap, row.size(), size)) {
    const Integer missing = bound.integer(0) - static_cast<Integer>(row.size());
    if (missing > kMaxRange) fail_limit("batch fills up more than {} items", kMaxRange);
    row.insert(row.end(), static_cast<size_t>(missing), bound.at(1));
  }
  rows.push_back(heap.list(std::move(row)));
  return rows;
}

std::vector<Value> make_slices(Heap& heap, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("slice", arguments, {"slices", "fill_with"}, 1);
  const std::vector<Value> all = collect(heap, input);
  const Integer count = bound.integer(0);
  if (count == 0) fail_render("integer division or modulo by zero");
  if (count > kMaxRange) fail_limit("slice makes more than {} lists", kMaxRange);
  std::vector<Value> rows;
  if (count < 0) return rows;
  const size_t slices = static_cast<size_t>(count);
  const size_t base = all.size() / slices, extra = all.size() % slices;
  auto position = all.begin();
  for (size_t i = 0; i < slices; ++i) {
    const auto end = position + static_cast<std::ptrdiff_t>(base + (i < extra ? 1 : 0));
    std::vector<Value> row(position, end);
    if (bound.find_some(1) && i >= extra) row.push_back(bound.at(1));
    rows.push_back(heap.list(std::move(row)));
    position = end;
  }
  return rows;
}

template <std::vector<Value> (*make_rows)(Heap&, const Value&, const Arguments&)>
Value group_rows(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return interpreter.heap().iterator_over("generator", [&heap = interpreter.heap(), input, arguments] {
    return make_rows(heap, input, arguments);
  });
}

Value attribute(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("attr", arguments, {"name"}, 1);
  const std::string_view name = bound.text(0);
  require_defined(input);
  // Like input.name, without falling back to input["name"].
  const auto* dict = input.as<Dict>();
  const Value found = get_attribute(interpreter.heap(), input, name);
  const bool is_item = dict && !found.as<Callable>() && !found.is_undefined() && dict->find(name);
  return is_item ? missing_attribute(input, name) : found;
}

constexpr std::array<FilterEntry, 18> kFilters = {{{"default", defaulted},
                                                   {"d", defaulted},
                                                   {"length", length},
                                                   {"count", length},
                                                   {"first", first},
                                                   {"last", last},
                                                   {"list", list},
                                                   {"reverse", reverse},
                                                   {"items", items},
                                                   {"sort", sort},
                                                   {"dictsort", dictsort},
                                                   {"unique", unique},
                                                   {"min", extreme<false>},
                                                   {"max", extreme<true>},
                                                   {"groupby", group_by},
                                                   {"batch", group_rows<make_batches>},
                                                   {"slice", group_rows<make_slices>},
                                                   {"attr", attribute}}};

}  // namespace

std::span<const FilterEntry> sequence_filters() {
  return kFilters;
}

}  // namespace assay::tokenizer_internal::jinja
