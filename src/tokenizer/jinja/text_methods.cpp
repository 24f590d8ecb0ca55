// Methods of str.
#include <algorithm>
#include <array>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/bound.h"
#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/text.h"
#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

struct TextMethod {
  std::string_view name;
  Value (*function)(Heap& heap, const TextBody& self, const Arguments& arguments);
};

using Convert = std::string (*)(std::string_view);
template <Convert convert>
Value convert_text(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound("method", arguments, {}, 0);
  heap.budget().spend_bytes(self.bytes.size());
  return heap.text(convert(self.bytes));
}

template <bool left, bool right>
Value strip(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound("strip", arguments, {"chars"}, 0);
  heap.budget().spend_bytes(self.bytes.size());
  const bool by_characters = bound.find_some(0) != nullptr;
  return heap.text(
      std::string(strip_text(heap, self.bytes, by_characters ? &bound.at(0) : nullptr, left, right)));
}

Integer limit_of(const BoundArguments& bound, size_t index) {
  return bound.integer_or(index, -1);
}

template <bool from_right>
Value split(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound(from_right ? "rsplit" : "split", arguments, {"sep", "maxsplit"}, 0);
  heap.budget().spend_bytes(self.bytes.size());
  std::vector<std::string_view> parts;
  if (bound.find_some(0)) {
    if (bound.text(0).empty()) fail_render("empty separator");
    parts = split_at(heap, self.bytes, bound.text(0), limit_of(bound, 1), from_right);
  } else {
    parts = split_at_space(heap, self.bytes, limit_of(bound, 1), from_right);
  }
  return make_list(heap, parts);
}

Value splitlines(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound("splitlines", arguments, {"keepends"}, 0);
  heap.budget().spend_bytes(self.bytes.size());
  return make_list(heap, split_lines(heap, self.bytes, bound.truth_or(0, false)));
}

template <bool from_right>
Value partition(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound("partition", arguments, {"sep"}, 1);
  const std::string_view separator = bound.text(0), text = self.bytes;
  if (separator.empty()) fail_render("empty separator");
  heap.budget().spend_bytes(text.size());
  const size_t at = from_right ? text.rfind(separator) : text.find(separator);
  if (at == std::string_view::npos) {
    const Value whole = heap.text(self.bytes), empty = heap.text("");
    return from_right ? heap.tuple({empty, empty, whole}) : heap.tuple({whole, empty, empty});
  }
  return heap.tuple({heap.text(std::string(text.substr(0, at))), heap.text(std::string(separator)),
                     heap.text(std::string(text.substr(at + separator.size())))});
}

bool matches(std::string_view text, std::string_view part, bool at_end) {
  return at_end ? text.ends_with(part) : text.starts_with(part);
}

// One text or a tuple of them, within [start, stop).
template <bool at_end>
Value starts_or_ends(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound(at_end ? "endswith" : "startswith", arguments, {"prefix", "start", "end"}, 1);
  const auto span = find_span(heap, self, bound, 1);
  if (!span) return false;
  if (const auto* tuple = bound.at(0).as<Sequence>(); tuple && tuple->kind == SequenceKind::kTuple) {
    return std::ranges::any_of(tuple->items, [&](const Value& item) {
      if (!item.text()) fail_render("a tuple for {}with must contain strings", at_end ? "ends" : "starts");
      return matches(span->text, item.text()->bytes, at_end);
    });
  }
  return matches(span->text, bound.text(0), at_end);
}

template <bool from_right, bool must_exist>
Value find(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound(must_exist ? "index" : "find", arguments, {"sub", "start", "end"}, 1);
  const std::string_view part = bound.text(0);
  const auto span = find_span(heap, self, bound, 1);
  if (span) {
    heap.budget().spend_bytes(self.bytes.size());
    const size_t at = from_right ? span->text.rfind(part) : span->text.find(part);
    if (at != std::string_view::npos) return span->first + count_characters(span->text.substr(0, at));
  }
  if (must_exist) fail_render("substring not found");
  return -1;
}

Value count(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound("count", arguments, {"sub", "start", "end"}, 1);
  const std::string_view part = bound.text(0);
  const auto span = find_span(heap, self, bound, 1);
  if (!span) return 0;
  heap.budget().spend_bytes(self.bytes.size());
  if (part.empty()) return count_characters(span->text) + 1;
  size_t found = 0;
  for (size_t at = span->text.find(part); at != std::string_view::npos;
       at = span->text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

Value replace(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound("replace", arguments, {"old", "new", "count"}, 2);
  return heap.text(replace_text(heap, self.bytes, bound.text(0), bound.text(1), bound.integer_or(2, -1)));
}

Value join(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound("join", arguments, {"iterable"}, 1);
  std::string out;
  ItemReader reader(heap, bound.at(0));
  bool first = true;
  for (size_t index = 0; auto item = reader.next(); ++index) {
    const TextBody* text = item->text();
    if (!text) fail_render("sequence item {}: expected str instance, {} found", index, type_name(*item));
    if (!first) out += self.bytes;
    first = false;
    out += self.markup && !text->markup ? escape_html(text->bytes) : text->bytes;
    heap.budget().spend_bytes(text->bytes.size() + self.bytes.size());
    if (out.size() > kMaxHeapBytes) fail_limit("a joined text is longer than {} MiB", kMaxHeapBytes >> 20);
  }
  return heap.text(std::move(out));
}

Value format(Heap& heap, const TextBody& self, const Arguments& arguments) {
  return format_braces(heap, self, arguments);
}

template <bool suffix>
Value remove_affix(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound(suffix ? "removesuffix" : "removeprefix", arguments, {"affix"}, 1);
  std::string_view text = self.bytes;
  if (matches(text, bound.text(0), suffix)) {
    suffix ? text.remove_suffix(bound.text(0).size()) : text.remove_prefix(bound.text(0).size());
  }
  return heap.text(std::string(text));
}

template <Alignment alignment>
Value justify(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound("justify", arguments, {"width", "fillchar"}, 1);
  const std::string_view fill = bound.find(1) ? bound.text(1) : " ";
  if (count_characters(fill) != 1) fail_render("the fill character must be exactly one character long");
  return heap.text(pad_text(heap, self.bytes, bound.integer(0), fill, alignment));
}

Value zfill(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound("zfill", arguments, {"width"}, 1);
  const bool is_signed = self.bytes.starts_with('-') || self.bytes.starts_with('+');
  const std::string sign = is_signed ? self.bytes.substr(0, 1) : "";
  const Integer width = bound.integer(0) - static_cast<Integer>(sign.size());
  return heap.text(
      sign + pad_text(heap, std::string_view(self.bytes).substr(sign.size()), width, "0", Alignment::kRight));
}

// All characters are of the class, and there is one.
template <bool (*is_member)(char32_t)>
Value all_are(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound("method", arguments, {}, 0);
  heap.budget().spend_bytes(self.bytes.size());
  for (size_t i = 0; i < self.bytes.size();) {
    if (!is_member(decode_character(self.bytes, i))) return false;
  }
  return !self.bytes.empty();
}

template <bool upper>
Value has_case(Heap& heap, const TextBody& self, const Arguments& arguments) {
  const BoundArguments bound("method", arguments, {}, 0);
  heap.budget().spend_bytes(self.bytes.size());
  return is_cased_as(self.bytes, upper);
}

constexpr std::array<TextMethod, 37> kMethods = {{
    {"strip", strip<true, true>},
    {"lstrip", strip<true, false>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"rsplit", split<true>},
    {"splitlines", splitlines},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"startswith", starts_or_ends<false>},
    {"endswith", starts_or_ends<true>},
    {"upper", convert_text<to_upper>},
    {"lower", convert_text<to_lower>},
    {"title", convert_text<to_title>},
    {"capitalize", convert_text<capitalize>},
    {"swapcase", convert_text<swap_case>},
    {"replace", replace},
    {"join", join},
    {"find", find<false, false>},
    {"rfind", find<true, false>},
    {"index", find<false, true>},
    {"rindex", find<true, true>},
    {"count", count},
    {"format", format},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"ljust", justify<Alignment::kLeft>},
    {"rjust", justify<Alignment::kRight>},
    {"center", justify<Alignment::kCenter>},
    {"zfill", zfill},
    {"isspace", all_are<is_space>},
    {"isalpha", all_are<is_alphabetic>},
    {"isdigit", all_are<is_digit>},
    {"isdecimal", all_are<is_decimal>},
    {"isnumeric", all_are<is_numeric>},
    {"isalnum", all_are<is_alphanumeric>},
    {"islower", has_case<false>},
    {"isupper", has_case<true>},
}};

Value as_markup(Heap& heap, const Value& value) {
  if (const TextBody* text = value.text()) return heap.text(text->bytes, true);
  const auto* sequence = value.as<Sequence>();
  if (!sequence) return value;
  std::vector<Value> items;
  for (const Value& item : sequence->items) items.push_back(as_markup(heap, item));
  return sequence->kind == SequenceKind::kList ? heap.list(std::move(items)) : heap.tuple(std::move(items));
}

// Markup escapes the plain texts it is combined with, and what comes out is markup again.
Arguments escape_arguments(Heap& heap, const Arguments& arguments) {
  Arguments escaped = arguments;
  const auto escape = [&](Value& value) {
    if (const TextBody* text = value.text(); text && !text->markup)
      value = heap.text(escape_html(text->bytes), true);
  };
  for (Value& value : escaped.positional) escape(value);
  for (auto& [name, value] : escaped.named) escape(value);
  return escaped;
}

template <size_t index>
Value call_method(Interpreter& interpreter, Value& self, const Arguments& arguments) {
  Heap& heap = interpreter.heap();
  const TextBody& text = *self.text();
  if (!text.markup) return kMethods[index].function(heap, text, arguments);
  return as_markup(heap, kMethods[index].function(heap, text, escape_arguments(heap, arguments)));
}

template <size_t... indices>
constexpr std::array<MethodFunction, sizeof...(indices)> make_callers(std::index_sequence<indices...>) {
  return {call_method<indices>...};
}
constexpr auto kCallers = make_callers(std::make_index_sequence<kMethods.size()>{});

}  // namespace

std::optional<Value> find_text_method(Heap& heap, const Value& object, std::string_view name) {
  for (size_t i = 0; i < kMethods.size(); ++i) {
    if (kMethods[i].name == name) return bind_method(heap, kMethods[i].name, object, kCallers[i]);
  }
  for (std::string_view other : {"casefold", "encode", "expandtabs", "format_map", "isascii", "isidentifier",
                                 "isprintable", "istitle", "maketrans", "translate"}) {
    if (other == name) fail_unsupported("the method str.{} is not supported", name);
  }
  return std::nullopt;
}

}  // namespace assay::tokenizer_internal::jinja
