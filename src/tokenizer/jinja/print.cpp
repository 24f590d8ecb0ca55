// str() and repr() of Python values.
#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

void append_escaped(std::string& out, char32_t c, char quote) {
  if (c == static_cast<char32_t>(quote) || c == '\\') {
    out += '\\';
    out += static_cast<char>(c);
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (is_printable(c)) {
    append_character(out, c);
  } else if (c < 0x100) {
    out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
  } else if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  } else {
    out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  }
}

// Single quotes, unless the text has some and no double ones.
void append_quoted(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (size_t i = 0; i < text.size();) append_escaped(out, decode_character(text, i), quote);
  out += quote;
}

class Printer {
 public:
  explicit Printer(Heap& heap) : heap_(heap) {}

  void append(std::string& out, const Value& value) {
    heap_.budget().spend();
    if (value.is_undefined()) {
      out += "Undefined";
    } else if (value.is_none()) {
      out += "None";
    } else if (const bool* boolean = value.boolean()) {
      out += *boolean ? "True" : "False";
    } else if (const Integer* integer = value.integer()) {
      out += print_integer(*integer);
    } else if (const double* real = value.real()) {
      out += print_number(*real);
    } else if (const TextBody* text = value.text()) {
      heap_.budget().spend_bytes(text->bytes.size());
      if (text->markup) out += "Markup(";
      append_quoted(out, text->bytes);
      if (text->markup) out += ")";
    } else {
      append_object(out, value);
    }
    if (out.size() > kMaxHeapBytes) fail_limit("a printed value is longer than {} MiB", kMaxHeapBytes >> 20);
  }

 private:
  void append_object(std::string& out, const Value& value) {
    if (const auto* sequence = value.as<Sequence>()) {
      append_sequence(out, *sequence);
    } else if (const auto* dict = value.as<Dict>()) {
      append_dict(out, *dict);
    } else if (const auto* view = value.as<DictView>()) {
      append_view(out, *view);
    } else if (const auto* range = value.as<Range>()) {
      out +=
          fmt::format("range({}, {}", print_integer(range->start), print_integer(range->stop));
      out += range->step == 1 ? ")" : fmt::format(", {})", print_integer(range->step));
    } else if (const auto* space = value.as<Namespace>()) {
      const DepthGuard guard(heap_.budget());  // a namespace may hold itself
      out += "<Namespace ";
      append_dict(out, space->attributes);
      out += ">";
    } else {
      out += value.object()->describe();
    }
  }

  void append_items(std::string& out, const std::vector<Value>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ", ";
      append(out, items[i]);
    }
  }

  void append_sequence(std::string& out, const Sequence& sequence) {
    const bool is_list = sequence.kind == SequenceKind::kList;
    out += is_list ? "[" : "(";
    append_items(out, sequence.items);
    if (!is_list && sequence.items.size() == 1) out += ",";
    out += is_list ? "]" : ")";
  }

  void append_dict(std::string& out, const Dict& dict) {
    out += "{";
    bool first = true;
    for (const auto& [key, value] : dict.entries) {
      if (!first) out += ", ";
      first = false;
      append(out, key);
      out += ": ";
      append(out, value);
    }
    out += "}";
  }

  void append_view(std::string& out, const DictView& view) {
    out += fmt::format("{}([", view.type_name());
    bool first = true;
    for (const auto& [key, value] : view.dict->entries) {
      if (!first) out += ", ";
      first = false;
      if (view.kind == DictViewKind::kItems) out += "(";
      if (view.kind != DictViewKind::kValues) append(out, key);
      if (view.kind == DictViewKind::kItems) out += ", ";
      if (view.kind != DictViewKind::kKeys) append(out, value);
      if (view.kind == DictViewKind::kItems) out += ")";
    }
    out += "])";
  }

  Heap& heap_;
};

}  // namespace

std::string print_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  // The shortest digits first, then Python's choice of notation by the decimal exponent.
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view scientific(buffer, static_cast<size_t>(end - buffer));
  const size_t e = scientific.find('e');
  int exponent = 0;
  const char* digits = scientific.data() + e + 1;
  if (*digits == '+') ++digits;
  std::from_chars(digits, end, exponent);
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02}", scientific.substr(0, e), exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  std::string fixed(buffer, static_cast<size_t>(end - buffer));
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

std::string print_integer(Integer value) {
  return fmt::format("{}", value);
}

std::string print_quoted(Heap& heap, const Value& value) {
  std::string out;
  Printer(heap).append(out, value);
  return out;
}

std::string print(Heap& heap, const Value& value) {
  if (value.is_undefined()) return {};
  if (const TextBody* text = value.text()) return text->bytes;
  return print_quoted(heap, value);
}

Value as_text(Heap& heap, const Value& value) {
  return value.is_text() ? value : heap.text(print(heap, value));
}

}  // namespace assay::tokenizer_internal::jinja
