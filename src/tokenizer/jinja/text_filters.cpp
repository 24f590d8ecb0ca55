// Filters that take or make texts.
#include <array>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/filter_table.h"
#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/json.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/text.h"
#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

// A method of str called on the text of the input.
Value call_method(Interpreter& interpreter, const Value& input, std::string_view name,
                  const Arguments& arguments) {
  const Value text = as_text(interpreter.heap(), input);
  return interpreter.call(*find_text_method(interpreter.heap(), text, name), arguments);
}

Value upper(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return call_method(interpreter, input, "upper", arguments);
}
Value lower(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return call_method(interpreter, input, "lower", arguments);
}
Value capitalize_text(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return call_method(interpreter, input, "capitalize", arguments);
}
Value trim(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("trim", arguments, {"chars"}, 0);
  Arguments positional;
  if (bound.find(0)) positional.positional.push_back(bound.at(0));
  return call_method(interpreter, input, "strip", positional);
}
Value center(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("center", arguments, {"width"}, 0);
  Arguments positional;
  positional.positional.push_back(bound.find(0) ? bound.at(0) : Value(80));
  return call_method(interpreter, input, "center", positional);
}

// Words start after white space, hyphens and opening brackets.
Value title(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("title", arguments, {}, 0);
  const std::string text = print(interpreter.heap(), input);
  interpreter.heap().budget().spend_bytes(text.size());
  const auto separates = [](char32_t c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const bool separator = separates(decode_character(text, i));
    const size_t after_first = i;
    for (size_t next = i; next < text.size(); i = next) {
      if (separates(decode_character(text, next)) != separator) break;
    }
    out += to_upper(std::string_view(text).substr(begin, after_first - begin));
    out += to_lower(std::string_view(text).substr(after_first, i - after_first));
  }
  return interpreter.heap().text(std::move(out));
}

Value string(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("string", arguments, {}, 0);
  return as_text(interpreter.heap(), input);
}

Value safe(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("safe", arguments, {}, 0);
  return interpreter.heap().text(print(interpreter.heap(), input), true);
}

Value escape(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("escape", arguments, {}, 0);
  if (input.text() && input.text()->markup) return input;
  return interpreter.heap().text(escape_html(print(interpreter.heap(), input)), true);
}

Value force_escape(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("forceescape", arguments, {}, 0);
  return interpreter.heap().text(escape_html(print(interpreter.heap(), input)), true);
}

Value replace(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("replace", arguments, {"old", "new", "count"}, 2);
  Heap& heap = interpreter.heap();
  const Integer limit = bound.find_some(2) ? bound.integer(2) : -1;
  return heap.text(
      replace_text(heap, print(heap, input), print(heap, bound.at(0)), print(heap, bound.at(1)), limit));
}

Value format(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Heap& heap = interpreter.heap();
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    fail_render("format cannot handle positional and keyword arguments at the same time");
  }
  Value values = heap.tuple(arguments.positional);
  if (!arguments.named.empty()) {
    Dict* dict = heap.make<Dict>();
    for (const auto& [name, value] : arguments.named) dict->set(heap.text(name), value);
    values = dict;
  }
  const Value text = as_text(heap, input);
  return format_percent(heap, *text.text(), values);
}

Value join(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("join", arguments, {"d", "attribute"}, 0);
  Heap& heap = interpreter.heap();
  const std::string separator = bound.find(0) ? print(heap, bound.at(0)) : std::string();
  std::string out;
  ItemReader reader(heap, input);
  for (bool first = true; auto item = reader.next(); first = false) {
    if (!first) out += separator;
    const Value value = bound.find_some(1) ? follow_path(heap, *item, bound.at(1)) : *item;
    out += print(heap, value);
    heap.budget().spend_bytes(separator.size());
    if (out.size() > kMaxHeapBytes) fail_limit("a joined text is longer than {} MiB", kMaxHeapBytes >> 20);
  }
  return heap.text(std::move(out));
}

Value indent(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("indent", arguments, {"width", "first", "blank"}, 0);
  require_defined(input);
  if (!input.text()) fail_render("indent takes a string, not {}", type_name(input));
  Heap& heap = interpreter.heap();
  const bool by_text = bound.find(0) && bound.at(0).text();
  const std::string indention =
      by_text ? bound.at(0).text()->bytes : pad_text(heap, "", bound.integer_or(0, 4), " ", Alignment::kLeft);
  const bool blank = bound.truth_or(2, false);
  const std::string text = input.text()->bytes + "\n";
  const auto lines = split_lines(heap, text, false);
  std::string out = bound.truth_or(1, false) ? indention : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out += '\n';
      if (blank || !lines[i].empty()) out += indention;
    }
    out += lines[i];
    heap.budget().spend_bytes(indention.size());
    if (out.size() > kMaxHeapBytes) fail_limit("an indented text is longer than {} MiB", kMaxHeapBytes >> 20);
  }
  return heap.text(std::move(out), input.text()->markup);
}

Value truncate(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("truncate", arguments, {"length", "killwords", "end", "leeway"}, 0);
  Heap& heap = interpreter.heap();
  const std::string_view end = bound.find(2) ? bound.text(2) : "...";
  const Integer length = bound.integer_or(0, 255);
  const Integer leeway = bound.find_some(3) ? bound.integer(3) : 5;
  const Integer kept = length - static_cast<Integer>(count_characters(end));
  if (kept < 0 || leeway < 0) fail_render("truncate: length and leeway are too small");
  if (static_cast<Integer>(length_of(input)) <= length + leeway) return input;  // lists as well
  if (!input.text()) fail_render("truncate takes a string, not {}", type_name(input));
  const std::string_view text = input.text()->bytes;
  std::string_view head = text.substr(0, character_offset(text, static_cast<size_t>(kept)));
  if (!bound.truth_or(1, false)) {
    const size_t space = head.rfind(' ');
    if (space != std::string_view::npos) head = head.substr(0, space);
  }
  return heap.text(std::string(head) + std::string(end));
}

Value word_count(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("wordcount", arguments, {}, 0);
  const std::string text = print(interpreter.heap(), input);
  interpreter.heap().budget().spend_bytes(text.size());
  size_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const bool word = is_word(decode_character(text, i));
    if (word && !inside) ++words;
    inside = word;
  }
  return words;
}

// transformers' own: no HTML escaping, and the arguments of json.dumps.
Value to_json(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  Heap& heap = interpreter.heap();
  JsonStyle style;
  style.ascii_only = bound.truth_or(0, false);
  style.sort_keys = bound.truth_or(3, false);
  if (const Value* indent = bound.find_some(1)) {
    style.multiline = true;
    style.item_separator = ",";
    style.indent =
        indent->text() ? indent->text()->bytes : pad_text(heap, "", bound.integer(1), " ", Alignment::kLeft);
  }
  if (const Value* separators = bound.find_some(2)) {
    const std::vector<Value> pair = collect(heap, *separators);
    if (pair.size() != 2 || !pair[0].text() || !pair[1].text())
      fail_render("tojson: separators must be two strings");
    style.item_separator = pair[0].text()->bytes;
    style.key_separator = pair[1].text()->bytes;
  }
  return heap.text(dump_json(heap, input, style));
}

constexpr std::array<FilterEntry, 18> kFilters = {{{"upper", upper},
                                                   {"lower", lower},
                                                   {"capitalize", capitalize_text},
                                                   {"trim", trim},
                                                   {"center", center},
                                                   {"title", title},
                                                   {"string", string},
                                                   {"safe", safe},
                                                   {"escape", escape},
                                                   {"e", escape},
                                                   {"forceescape", force_escape},
                                                   {"replace", replace},
                                                   {"format", format},
                                                   {"join", join},
                                                   {"indent", indent},
                                                   {"truncate", truncate},
                                                   {"wordcount", word_count},
                                                   {"tojson", to_json}}};

}  // namespace

std::span<const FilterEntry> text_filters() {
  return kFilters;
}

}  // namespace assay::tokenizer_internal::jinja
