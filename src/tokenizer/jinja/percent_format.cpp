// "%s and %(name)d" % values.
#include <fmt/core.h>

#include <cmath>

#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/number_format.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/text.h"
#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

constexpr int kMaxWidth = 100'000;

struct Directive {
  bool left = false, zero = false, plus = false, space = false, alternate = false;
  int width = 0, precision = -1;
  char type = 0;
};

class PercentFormatter {
 public:
  PercentFormatter(Heap& heap, const TextBody& format, const Value& values)
      : heap_(heap), format_(format.bytes), markup_(format.markup), values_(values) {
    const auto* tuple = values.as<Sequence>();
    tuple_ = tuple && tuple->kind == SequenceKind::kTuple ? tuple : nullptr;
    dict_ = values.as<Dict>();
  }

  std::string run() {
    while (position_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', position_), format_.size());
      out_ += format_.substr(position_, percent - position_);
      position_ = percent + 1;
      if (percent < format_.size()) read_directive();
      if (out_.size() > kMaxHeapBytes) fail_limit("a text is longer than {} MiB", kMaxHeapBytes >> 20);
    }
    const bool all_used = tuple_ ? next_ >= tuple_->items.size() : next_ > 0 || dict_ || is_mapping_like();
    if (!all_used) fail_render("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  // Python takes whatever has subscripts here for a mapping and does not mind when it is not used.
  bool is_mapping_like() const {
    return (values_.as<Sequence>() && !tuple_) || values_.as<Range>() || values_.is_undefined();
  }

  char peek() const {
    if (position_ >= format_.size()) fail_render("incomplete format");
    return format_[position_];
  }

  Value next_value() {
    if (tuple_) {
      if (next_ >= tuple_->items.size()) fail_render("not enough arguments for format string");
      return tuple_->items[next_++];
    }
    if (next_++ > 0) fail_render("not enough arguments for format string");
    return values_;
  }

  int read_count() {
    if (peek() == '*') {
      ++position_;
      auto number = next_value().whole_number();
      if (!number || *number > kMaxWidth || *number < -kMaxWidth) fail_render("* wants a small int");
      return static_cast<int>(*number);
    }
    int count = 0;
    while (peek() >= '0' && peek() <= '9') {
      count = count * 10 + (format_[position_++] - '0');
      if (count > kMaxWidth) fail_limit("a format asks for more than {} characters", kMaxWidth);
    }
    return count;
  }

  void read_flags(Directive& directive) {
    for (;; ++position_) {
      switch (peek()) {
        case '-':
          directive.left = true;
          break;
        case '0':
          directive.zero = true;
          break;
        case '+':
          directive.plus = true;
          break;
        case ' ':
          directive.space = true;
          break;
        case '#':
          directive.alternate = true;
          break;
        default:
          return;
      }
    }
  }

  Value read_key() {
    const size_t end = format_.find(')', position_);
    if (end == std::string_view::npos) fail_render("incomplete format key");
    if (!dict_) fail_render("format requires a mapping");
    const std::string_view key = format_.substr(position_ + 1, end - position_ - 1);
    const Value* found = dict_->find(key);
    if (!found) fail_render("the format names a key '{}' that is not there", key);
    position_ = end + 1;
    return *found;
  }

  void read_directive() {
    if (peek() == '%') {
      out_ += '%';
      ++position_;
      return;
    }
    std::optional<Value> value;
    if (peek() == '(') value = read_key();
    Directive directive;
    read_flags(directive);
    directive.width = read_count();
    if (directive.width < 0) {
      directive.left = true;
      directive.width = -directive.width;
    }
    if (peek() == '.') {
      ++position_;
      directive.precision = std::max(read_count(), 0);
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++position_;
    directive.type = peek();
    ++position_;
    append(directive, value ? *value : next_value());
  }

  void append(const Directive& directive, const Value& value) {
    switch (directive.type) {
      case 's':
        return append_text(directive, markup_text(value));
      case 'r':
      case 'a':
        return append_text(directive, print_quoted(heap_, value));
      case 'c':
        return append_character_of(directive, value);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return append_whole(directive, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return append_real(directive, value);
      default:
        fail_render("unsupported format character '{}'", directive.type);
    }
  }

  std::string markup_text(const Value& value) {
    const std::string text = print(heap_, value);
    const bool is_markup = value.text() && value.text()->markup;
    return markup_ && !is_markup ? escape_html(text) : text;
  }

  void append_text(const Directive& directive, std::string_view text) {
    if (directive.precision >= 0) {
      text = text.substr(0, character_offset(text, static_cast<size_t>(directive.precision)));
    }
    out_ +=
        pad_text(heap_, text, directive.width, " ", directive.left ? Alignment::kLeft : Alignment::kRight);
  }

  void append_character_of(const Directive& directive, const Value& value) {
    std::string one;
    if (const TextBody* text = value.text(); text && text->length == 1) {
      one = text->bytes;
    } else if (auto code = value.whole_number(); code && *code >= 0 && *code < 0x110000) {
      append_character(one, static_cast<char32_t>(*code));
    } else {
      fail_render("%c requires int or char");
    }
    append_text(directive, one);
  }

  void append_number(const Directive& directive, bool negative, const std::string& digits,
                     std::string_view prefix) {
    std::string sign = negative ? "-" : directive.plus ? "+" : directive.space ? " " : "";
    sign += prefix;
    const auto width = static_cast<Integer>(directive.width) - static_cast<Integer>(sign.size());
    if (directive.left) {
      out_ += pad_text(heap_, sign + digits, directive.width, " ", Alignment::kLeft);
    } else if (directive.zero) {
      out_ += sign + pad_text(heap_, digits, width, "0", Alignment::kRight);
    } else {
      out_ += pad_text(heap_, sign + digits, directive.width, " ", Alignment::kRight);
    }
  }

  void append_whole(const Directive& directive, const Value& value) {
    auto number = value.whole_number();
    const bool is_decimal = std::string_view("diu").find(directive.type) != std::string_view::npos;
    if (!number && value.real() && is_decimal && std::abs(*value.real()) < 1e38) {
      number = static_cast<Integer>(*value.real());
    }
    if (!number) fail_render("%{} format: a number is required, not {}", directive.type, type_name(value));
    const Integer magnitude = *number < 0 ? -*number : *number;
    const char type = directive.type;
    std::string digits = type == 'x'   ? fmt::format("{:x}", magnitude)
                         : type == 'X' ? fmt::format("{:X}", magnitude)
                         : type == 'o' ? fmt::format("{:o}", magnitude)
                                       : print_integer(magnitude);
    if (directive.precision > 0)
      digits = pad_text(heap_, digits, directive.precision, "0", Alignment::kRight);
    const bool has_prefix = directive.alternate && !is_decimal;
    append_number(directive, *number < 0, digits, has_prefix ? std::string("0") + type : std::string());
  }

  void append_real(const Directive& directive, const Value& value) {
    auto number = value.number();
    if (!number) fail_render("must be real number, not {}", type_name(value));
    const int precision = directive.precision < 0 ? 6 : std::min(directive.precision, 1000);
    append_number(directive, std::signbit(*number),
                  format_real(std::abs(*number), directive.type, precision, directive.alternate), "");
  }

  Heap& heap_;
  const std::string_view format_;
  const bool markup_;
  const Value& values_;
  const Sequence* tuple_;
  const Dict* dict_;
  size_t position_ = 0;
  size_t next_ = 0;
  std::string out_;
};

}  // namespace

Value format_percent(Heap& heap, const TextBody& format, const Value& values) {
  heap.budget().spend_bytes(format.bytes.size());
  return heap.text(PercentFormatter(heap, format, values).run(), format.markup);
}

}  // namespace assay::tokenizer_internal::jinja
