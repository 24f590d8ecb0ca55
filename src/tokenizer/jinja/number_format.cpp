#include "tokenizer/jinja/number_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/text.h"
#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

constexpr int kMaxWidth = 100'000;
constexpr int kMaxPrecision = 1'000;

int read_number(std::string_view& text, int limit) {
  int value = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    value = value * 10 + (text[0] - '0');
    if (value > limit) fail_limit("a format asks for more than {} characters", limit);
    text.remove_prefix(1);
  }
  return value;
}

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

void read_alignment(std::string_view& text, FormatSpec& spec) {
  size_t fill_size = 0;
  if (!text.empty()) decode_character(text, fill_size);
  if (fill_size > 0 && fill_size < text.size() && is_align(text[fill_size])) {
    spec.fill = std::string(text.substr(0, fill_size));
    spec.align = text[fill_size];
    text.remove_prefix(fill_size + 1);
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::string group_thousands(const std::string& digits) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string integer_digits(Integer magnitude, char type) {
  switch (type) {
    case 'x':
      return fmt::format("{:x}", magnitude);
    case 'X':
      return fmt::format("{:X}", magnitude);
    case 'o':
      return fmt::format("{:o}", magnitude);
    case 'b':
      return fmt::format("{:b}", magnitude);
    default:
      return print_integer(magnitude);
  }
}

std::string align_text(Heap& heap, const std::string& text, const FormatSpec& spec, char align) {
  const Alignment alignment = align == '<'   ? Alignment::kLeft
                              : align == '^' ? Alignment::kCenter
                                             : Alignment::kRight;
  if (alignment != Alignment::kCenter) return pad_text(heap, text, spec.width, spec.fill, alignment);
  // format() puts the odd character to the right, unlike str.center().
  const auto length = static_cast<int>(count_characters(text));
  const int left = spec.width > length ? (spec.width - length) / 2 : 0;
  return pad_text(heap, pad_text(heap, text, length + left, spec.fill, Alignment::kRight), spec.width,
                  spec.fill, Alignment::kLeft);
}

std::string sign_of(bool negative, char sign) {
  if (negative) return "-";
  return sign == '+' ? "+" : sign == ' ' ? " " : "";
}

std::string align_number(Heap& heap, const std::string& sign, const std::string& digits,
                         const FormatSpec& spec) {
  if (spec.align != '=') return align_text(heap, sign + digits, spec, spec.align ? spec.align : '>');
  const auto width = static_cast<Integer>(spec.width) - static_cast<Integer>(sign.size());
  return sign + pad_text(heap, digits, width, spec.fill, Alignment::kRight);
}

std::string format_whole(Heap& heap, Integer value, const FormatSpec& spec) {
  if (spec.precision >= 0) fail_render("precision not allowed in integer format specifier");
  if (spec.type == 'c') {
    std::string one;
    append_character(one, static_cast<char32_t>(std::clamp<Integer>(value, 0, 0x10FFFF)));
    return align_text(heap, one, spec, spec.align ? spec.align : '<');
  }
  const Integer magnitude = value < 0 ? -value : value;
  std::string digits = integer_digits(magnitude, spec.type);
  if (spec.grouped) digits = group_thousands(digits);
  std::string sign = sign_of(value < 0, spec.sign);
  if (spec.alternate && spec.type != 0 && spec.type != 'd') sign += std::string("0") + spec.type;
  return align_number(heap, sign, digits, spec);
}

std::string format_double(Heap& heap, double value, const FormatSpec& spec) {
  std::string digits;
  if (spec.type == 0 && spec.precision < 0) {
    digits = print_number(std::abs(value));
  } else if (spec.type == '%') {
    digits =
        format_real(std::abs(value) * 100, 'f', spec.precision < 0 ? 6 : spec.precision, spec.alternate) +
        "%";
  } else if (spec.type == 0) {
    digits = format_real(std::abs(value), 'g', spec.precision, spec.alternate);
    // Unlike 'g', the empty type keeps one digit after the point.
    if (std::isfinite(value) && digits.find_first_of(".e") == std::string::npos) digits += ".0";
  } else {
    digits = format_real(std::abs(value), spec.type, spec.precision < 0 ? 6 : spec.precision, spec.alternate);
  }
  if (spec.grouped) digits = group_thousands(digits);
  return align_number(heap, sign_of(std::signbit(value), spec.sign), digits, spec);
}

std::string format_string(Heap& heap, std::string_view text, const FormatSpec& spec) {
  if (spec.type != 0 && spec.type != 's')
    fail_render("unknown format code '{}' for object of type 'str'", spec.type);
  if (spec.align == '=') fail_render("'=' alignment not allowed in string format specifier");
  if (spec.precision >= 0) text = text.substr(0, character_offset(text, static_cast<size_t>(spec.precision)));
  return align_text(heap, std::string(text), spec, spec.align ? spec.align : '<');
}

}  // namespace

FormatSpec parse_format_spec(std::string_view text) {
  FormatSpec spec;
  read_alignment(text, spec);
  if (!text.empty() && std::string_view("+- ").find(text[0]) != std::string_view::npos) {
    spec.sign = text[0];
    text.remove_prefix(1);
  }
  spec.alternate = take(text, '#');
  if (text.starts_with('0') && spec.align == 0) {
    spec.fill = "0";
    spec.align = '=';
  }
  spec.width = read_number(text, kMaxWidth);
  spec.grouped = take(text, ',');
  if (take(text, '.')) {
    if (text.empty() || text[0] < '0' || text[0] > '9') fail_render("format specifier missing precision");
    spec.precision = read_number(text, kMaxPrecision);
  }
  if (!text.empty()) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) fail_render("invalid format specifier");
  return spec;
}

std::string format_real(double value, char type, int precision, bool alternate) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  const std::string notation = fmt::format("{{:{}.{}{}}}", alternate ? "#" : "", precision, type);
  return fmt::format(fmt::runtime(notation), value);
}

std::string format_value(Heap& heap, const Value& value, const FormatSpec& spec) {
  const bool is_integer_type = std::string_view("bcdoxX").find(spec.type) != std::string_view::npos;
  const bool is_real_type = std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (spec.type != 0 && value.number()) {
    if (is_real_type) return format_double(heap, *value.number(), spec);
    if (!is_integer_type || !value.whole_number()) {
      fail_render("unknown format code '{}' for object of type '{}'", spec.type, type_name(value));
    }
  }
  if (value.integer() || (value.boolean() && spec.type != 0))
    return format_whole(heap, *value.whole_number(), spec);
  if (value.real()) return format_double(heap, *value.real(), spec);
  return format_string(heap, print(heap, value), spec);
}

}  // namespace assay::tokenizer_internal::jinja
