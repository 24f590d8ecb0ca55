#include "tokenizer/jinja/literal.h"

#include <charconv>
#include <cstdint>
#include <limits>

#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// digit (_? digit)*, from `position`; the end of it, or `position` when there is none.
size_t skip_digits(std::string_view text, size_t position, int base) {
  size_t end = position;
  while (end < text.size()) {
    const size_t next = text[end] == '_' && end > position ? end + 1 : end;
    if (next >= text.size() || digit_value(text[next]) >= base) break;
    end = next + 1;
  }
  return end;
}

Integer parse_digits(std::string_view digits, int base, int line) {
  Integer value = 0;
  for (char c : digits) {
    if (c == '_') continue;
    if (__builtin_mul_overflow(value, Integer{base}, &value) ||
        __builtin_add_overflow(value, Integer{digit_value(c)}, &value)) {
      throw Failure(ErrorCode::kUnsupported, "an integer literal does not fit into 128 bits", line);
    }
  }
  return value;
}

size_t skip_exponent(std::string_view text, size_t position) {
  if (position >= text.size() || (text[position] != 'e' && text[position] != 'E')) return position;
  size_t digits = position + 1;
  if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
  const size_t end = skip_digits(text, digits, 10);
  return end == digits ? position : end;
}

// End of the float at the start, or 0 when it is an integer.
size_t find_float_end(std::string_view text) {
  const size_t whole = skip_digits(text, 0, 10);
  size_t end = whole;
  if (end < text.size() && text[end] == '.') {
    const size_t fraction = skip_digits(text, end + 1, 10);
    if (fraction != end + 1) end = fraction;
  }
  end = skip_exponent(text, end);
  return end == whole ? 0 : end;
}

NumberLiteral read_float(std::string_view text) {
  std::string digits;
  for (char c : text) {
    if (c != '_') digits += c;
  }
  NumberLiteral literal{text.size(), true, 0, 0};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), literal.real);
  if (error == std::errc::result_out_of_range) {
    // Python rounds to infinity or zero; the sign of the exponent tells which.
    literal.real = digits.find("e-") == std::string::npos && digits.find("E-") == std::string::npos
                       ? std::numeric_limits<double>::infinity()
                       : 0.0;
  }
  return literal;
}

uint32_t read_code(std::string_view text, size_t begin, size_t digits, int line) {
  uint32_t code = 0;
  for (size_t i = begin; i < begin + digits; ++i) {
    if (i >= text.size() || digit_value(text[i]) >= 16) fail_syntax(line, "truncated escape in a string");
    code = code << 4 | static_cast<uint32_t>(digit_value(text[i]));
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    fail_syntax(line, "escape in a string names no Unicode character");
  }
  return code;
}

// One to three octal digits.
size_t append_octal(std::string& out, std::string_view text, size_t i) {
  uint32_t code = 0;
  size_t end = i;
  while (end < text.size() && end < i + 3 && text[end] >= '0' && text[end] <= '7') {
    code = code * 8 + static_cast<uint32_t>(text[end++] - '0');
  }
  append_character(out, code);
  return end;
}

char simple_escape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return 0;
  }
}

// `i` is at the character after the backslash; the result is after the escape.
size_t append_escape(std::string& out, std::string_view text, size_t i, int line) {
  const char c = text[i];
  if (const char simple = simple_escape(c)) {
    out += simple;
    return i + 1;
  }
  if (c == '\n') return i + 1;
  if (c >= '0' && c <= '7') return append_octal(out, text, i);
  const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits > 0) {
    append_character(out, read_code(text, i + 1, digits, line));
    return i + 1 + digits;
  }
  if (c == 'N') throw Failure(ErrorCode::kUnsupported, "\\N{...} escapes are not supported", line);
  out += '\\';  // an unknown escape stays as it is
  return i;
}

}  // namespace

NumberLiteral read_number_literal(std::string_view text, bool after_dot, int line) {
  if (!after_dot) {
    if (const size_t end = find_float_end(text)) return read_float(text.substr(0, end));
  }
  NumberLiteral literal;
  int base = 10;
  if (text.size() > 2 && text[0] == '0') {
    const char prefix = static_cast<char>(text[1] | 0x20);
    base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
  }
  size_t begin = 0, end = 0;
  if (base != 10) {
    begin = text[2] == '_' ? 3 : 2;
    end = skip_digits(text, begin, base);
  }
  if (base == 10 || end == begin) {
    begin = 0;
    base = 10;
    end = skip_digits(text, 0, 10);
    if (text[0] == '0') {  // zeros only: 007 is 00 followed by 7, which the parser refuses
      for (end = 1; end < text.size() && (text[end] == '0' || text[end] == '_');) ++end;
      while (text[end - 1] == '_') --end;
    }
  }
  literal.size = end;
  literal.integer = parse_digits(text.substr(begin, end - begin), base, line);
  return literal;
}

std::string unescape_string(std::string_view text, int line) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      out += text[i++];
    } else {
      i = append_escape(out, text, i + 1, line);
    }
  }
  return out;
}

}  // namespace assay::tokenizer_internal::jinja
