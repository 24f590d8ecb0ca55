// "{} and {name.part[0]:>10}".format(values).
#include <charconv>

#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/number_format.h"
#include "tokenizer/jinja/operations.h"

namespace assay::tokenizer_internal::jinja {
namespace {

constexpr size_t kNone = std::string_view::npos;

class BraceFormatter {
 public:
  BraceFormatter(Heap& heap, const Arguments& arguments) : heap_(heap), arguments_(arguments) {}

  // Specifications may hold fields themselves, one level deep.
  std::string run(std::string_view format, int depth) {
    if (depth > 1) fail_render("max string recursion exceeded");
    std::string out;
    for (size_t i = 0; i < format.size();) {
      const char c = format[i];
      if (c != '{' && c != '}') {
        out += c;
        ++i;
      } else if (i + 1 < format.size() && format[i + 1] == c) {
        out += c;
        i += 2;
      } else if (c == '}') {
        fail_render("single '}}' encountered in format string");
      } else {
        const size_t end = find_end(format, i + 1);
        out += format_field(format.substr(i + 1, end - i - 1), depth);
        i = end + 1;
      }
      if (out.size() > kMaxHeapBytes) fail_limit("a text is longer than {} MiB", kMaxHeapBytes >> 20);
    }
    return out;
  }

 private:
  static size_t find_end(std::string_view format, size_t begin) {
    int open = 1;
    for (size_t i = begin; i < format.size(); ++i) {
      if (format[i] == '{') ++open;
      if (format[i] == '}' && --open == 0) return i;
    }
    fail_render("expected '}}' before end of string");
  }

  std::string format_field(std::string_view field, int depth) {
    heap_.budget().spend_bytes(field.size());
    const size_t colon = std::min(field.find(':'), field.size());
    std::string_view name = field.substr(0, colon);
    char conversion = 0;
    if (const size_t bang = name.find('!'); bang != kNone) {
      if (name.size() != bang + 2) fail_render("expected one conversion character after '!'");
      conversion = name[bang + 1];
      name = name.substr(0, bang);
    }
    Value value = find_value(name);  // before the fields of the specification, which are numbered after it
    const std::string spec = colon < field.size() ? run(field.substr(colon + 1), depth + 1) : std::string();
    if (conversion == 'r' || conversion == 'a') value = heap_.text(print_quoted(heap_, value));
    if (conversion == 's') value = as_text(heap_, value);
    if (conversion != 0 && std::string_view("ras").find(conversion) == kNone) {
      fail_render("unknown conversion specifier '{}'", conversion);
    }
    if (!spec.empty() && (value.object() || value.is_none())) {
      fail_render("unsupported format string passed to {}.__format__", type_name(value));
    }
    return format_value(heap_, value, parse_format_spec(spec));
  }

  Value find_value(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = find_argument(name.substr(0, end));
    name.remove_prefix(end);
    while (!name.empty()) {
      if (name[0] == '.') {
        const size_t next = std::min(name.find_first_of(".[", 1), name.size());
        value = get_attribute(heap_, value, name.substr(1, next - 1));
        name.remove_prefix(next);
      } else {
        const size_t close = name.find(']');
        if (name[0] != '[' || close == kNone) fail_render("expected '}}' before end of string");
        value = get_item(heap_, value, key_of(name.substr(1, close - 1)));
        name.remove_prefix(close + 1);
      }
    }
    return value;
  }

  std::optional<size_t> index_of(std::string_view name) const {
    size_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
    return index;
  }

  Value key_of(std::string_view name) {
    if (auto index = index_of(name)) return *index;
    return heap_.text(std::string(name));
  }

  Value find_argument(std::string_view name) {
    std::optional<size_t> index = name.empty() ? std::optional<size_t>(next_++) : index_of(name);
    if (index) {
      if (*index >= arguments_.positional.size()) fail_render("replacement index {} out of range", *index);
      return arguments_.positional[*index];
    }
    for (const auto& [argument, value] : arguments_.named) {
      if (argument == name) return value;
    }
    fail_render("format() lacks the argument '{}'", name);
  }

  Heap& heap_;
  const Arguments& arguments_;
  size_t next_ = 0;
};

}  // namespace

Value format_braces(Heap& heap, const TextBody& format, const Arguments& arguments) {
  heap.budget().spend_bytes(format.bytes.size());
  return heap.text(BraceFormatter(heap, arguments).run(format.bytes, 0));
}

}  // namespace assay::tokenizer_internal::jinja
