#include "tokenizer/jinja/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cmath>

#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

Value import_value(Heap& heap, const boost::json::value& json, int depth);

Dict* import_object(Heap& heap, const boost::json::object& json, int depth) {
  if (depth > kMaxValueDepth) fail_limit("the context nests deeper than {} levels", kMaxValueDepth);
  Dict* dict = heap.make<Dict>();
  heap.reserve_values(2 * json.size());
  for (const auto& [key, value] : json) {
    dict->set(heap.text(std::string(key)), import_value(heap, value, depth + 1));
  }
  return dict;
}

Value import_value(Heap& heap, const boost::json::value& json, int depth) {
  if (depth > kMaxValueDepth) fail_limit("the context nests deeper than {} levels", kMaxValueDepth);
  switch (json.kind()) {
    case boost::json::kind::null:
      return None{};
    case boost::json::kind::bool_:
      return json.get_bool();
    case boost::json::kind::int64:
      return static_cast<Integer>(json.get_int64());
    case boost::json::kind::uint64:
      return static_cast<Integer>(json.get_uint64());
    case boost::json::kind::double_:
      return json.get_double();
    case boost::json::kind::string:
      return heap.text(std::string(json.get_string()));
    case boost::json::kind::object:
      return import_object(heap, json.get_object(), depth);
    case boost::json::kind::array:
      break;
  }
  std::vector<Value> items;
  items.reserve(json.get_array().size());
  for (const auto& item : json.get_array()) items.push_back(import_value(heap, item, depth + 1));
  return heap.list(std::move(items));
}

void append_json_character(std::string& out, char32_t c, bool ascii_only) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\b':
      out += "\\b";
      return;
    default:
      break;
  }
  const auto code = static_cast<uint32_t>(c);
  if (code < 0x20 || (ascii_only && code >= 0x7F && code < 0x10000)) {
    out += fmt::format("\\u{:04x}", code);
  } else if (ascii_only && code >= 0x10000) {
    out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                       0xDC00 + ((code - 0x10000) & 0x3FF));
  } else {
    append_character(out, c);
  }
}

class JsonWriter {
 public:
  JsonWriter(Heap& heap, const JsonStyle& style) : heap_(heap), style_(style) {}

  void write(const Value& value) {
    heap_.budget().spend();
    if (value.is_none()) {
      out_ += "null";
    } else if (const bool* boolean = value.boolean()) {
      out_ += *boolean ? "true" : "false";
    } else if (const Integer* integer = value.integer()) {
      out_ += print_integer(*integer);
    } else if (const double* real = value.real()) {
      out_ += number(*real);
    } else if (const TextBody* text = value.text()) {
      write_string(text->bytes);
    } else if (const auto* sequence = value.as<Sequence>()) {
      write_sequence(*sequence);
    } else if (const auto* dict = value.as<Dict>()) {
      write_dict(*dict);
    } else {
      fail_render("object of type {} is not JSON serializable", type_name(value));
    }
    if (out_.size() > kMaxHeapBytes) fail_limit("JSON text is longer than {} MiB", kMaxHeapBytes >> 20);
  }
  std::string take() { return std::move(out_); }

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return print_number(value);
  }

  void write_string(std::string_view text) {
    heap_.budget().spend_bytes(text.size());
    out_ += '"';
    for (size_t i = 0; i < text.size();)
      append_json_character(out_, decode_character(text, i), style_.ascii_only);
    out_ += '"';
  }

  void break_line() {
    if (!style_.multiline) return;
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += style_.indent;
    heap_.budget().spend_bytes(style_.indent.size() * static_cast<size_t>(level_));
  }

  void write_sequence(const Sequence& sequence) {
    if (sequence.items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      break_line();
      write(sequence.items[i]);
    }
    --level_;
    break_line();
    out_ += ']';
  }

  std::string key_text(const Value& key) const {
    if (const TextBody* text = key.text()) return text->bytes;
    if (key.is_none()) return "null";
    if (const bool* boolean = key.boolean()) return *boolean ? "true" : "false";
    if (const Integer* integer = key.integer()) return print_integer(*integer);
    if (const double* real = key.real()) return number(*real);
    fail_render("keys must be str, int, float, bool or none, not {}", type_name(key));
  }

  void write_dict(const Dict& dict) {
    if (dict.entries.empty()) {
      out_ += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::ranges::stable_sort(entries,
                               [&](const auto* a, const auto* b) { return less(heap_, a->first, b->first); });
    }
    out_ += '{';
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      break_line();
      write_string(key_text(entries[i]->first));
      out_ += style_.key_separator;
      write(entries[i]->second);
    }
    --level_;
    break_line();
    out_ += '}';
  }

  Heap& heap_;
  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

Dict* import_context(Heap& heap, const boost::json::object& context) {
  return import_object(heap, context, 0);
}

std::string dump_json(Heap& heap, const Value& value, const JsonStyle& style) {
  JsonWriter writer(heap, style);
  writer.write(value);
  return writer.take();
}

}  // namespace assay::tokenizer_internal::jinja
