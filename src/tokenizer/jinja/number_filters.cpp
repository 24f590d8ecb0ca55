// Filters on numbers.
#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/filter_table.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

// The digits without white space around and without the underscores between; nothing when those are
// misplaced.
std::optional<std::string> clean_number(std::string_view text) {
  text = strip_left(strip_right(text));
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || digit_value(text[i - 1]) > 35 ||
               digit_value(text[i + 1]) > 35) {
      return std::nullopt;
    }
  }
  return out;
}

// int(text, base)
std::optional<Integer> parse_integer(std::string_view text, int base) {
  auto cleaned = clean_number(text);
  if (!cleaned) return std::nullopt;
  std::string_view rest = *cleaned;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.size() > 2 && rest[0] == '0') {
    const char prefix = static_cast<char>(rest[1] | 0x20);
    const int named = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    if (named != 0 && (base == named || base == 0)) {
      base = named;
      rest.remove_prefix(2);
    }
  }
  if (base == 0) base = 10;
  if (rest.empty()) return std::nullopt;
  Integer value = 0;
  for (char c : rest) {
    if (digit_value(c) >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, Integer{base}, &value) ||
        __builtin_add_overflow(value, Integer{digit_value(c)}, &value)) {
      fail_unsupported("integer does not fit into 128 bits");
    }
  }
  return negative ? -value : value;
}

// float(text)
std::optional<double> parse_real(std::string_view text) {
  auto cleaned = clean_number(text);
  if (!cleaned || cleaned->find_first_of("xX(") != std::string::npos) return std::nullopt;
  std::string_view rest = *cleaned;
  if (rest.starts_with('+')) {
    rest.remove_prefix(1);
    if (rest.starts_with('-')) return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (end != rest.data() + rest.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    const bool tiny = rest.find("e-") != std::string_view::npos || rest.find("E-") != std::string_view::npos;
    value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    return rest.starts_with('-') ? -value : value;
  }
  return value;
}

std::optional<double> to_real(const Value& value) {
  require_defined(value);
  if (const TextBody* text = value.text()) return parse_real(text->bytes);
  return value.number();
}

Integer truncate_real(double value) {
  if (std::isinf(value)) fail_render("cannot convert float infinity to integer");
  if (std::abs(value) > 1e38) fail_unsupported("integer does not fit into 128 bits");
  return static_cast<Integer>(value);
}

Value to_integer(Interpreter&, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("int", arguments, {"default", "base"}, 0);
  require_defined(input);
  const Integer base = bound.integer_or(1, 10);
  if (const TextBody* text = input.text()) {
    if (base == 0 || (base >= 2 && base <= 36)) {
      if (auto value = parse_integer(text->bytes, static_cast<int>(base))) return *value;
    }
  } else if (auto whole = input.whole_number()) {
    return *whole;
  }
  const auto real = to_real(input);
  if (real && !std::isnan(*real)) return truncate_real(*real);
  return bound.find(0) ? bound.at(0) : Value(0);
}

Value to_float(Interpreter&, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("float", arguments, {"default"}, 0);
  if (auto real = to_real(input)) return *real;
  return bound.find(0) ? bound.at(0) : Value(0.0);
}

Value absolute(Interpreter&, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("abs", arguments, {}, 0);
  require_defined(input);
  if (auto whole = input.whole_number()) return *whole < 0 ? negate(*whole) : Value(*whole);
  if (const double* real = input.real()) return std::abs(*real);
  fail_render("bad operand type for abs(): '{}'", type_name(input));
}

// Rounds half to even on the exact value, as Python does.
double round_real(double value, Integer precision) {
  if (!std::isfinite(value) || precision > 330) return value;
  if (precision < -330) return std::copysign(0.0, value);
  const int digits = static_cast<int>(precision);
  if (digits >= 0) {
    const std::string text = fmt::format("{:.{}f}", value, digits);
    double rounded = 0;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    return rounded;
  }
  const double unit = std::pow(10.0, -digits);
  return std::nearbyint(value / unit) * unit;
}

Integer round_whole(Integer value, Integer precision) {
  if (precision >= 0) return value;
  if (precision < -37) return 0;
  Integer unit = 1;
  for (Integer i = 0; i < -precision; ++i) unit *= 10;
  Integer quotient = value / unit, rest = value % unit;
  if (rest < 0) {
    rest += unit;
    --quotient;
  }
  if (rest > unit - rest || (rest == unit - rest && quotient % 2 != 0)) ++quotient;
  return quotient * unit;
}

Value round_number(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("round", arguments, {"precision", "method"}, 0);
  require_defined(input);
  const Integer precision = bound.integer_or(0, 0);
  const std::string_view method = bound.find(1) ? bound.text(1) : "common";
  const auto number = input.number();
  if (!number) fail_render("round takes a number, not {}", type_name(input));
  if (method == "common") {
    if (auto whole = input.whole_number()) return round_whole(*whole, precision);
    return round_real(*number, precision);
  }
  if (method != "ceil" && method != "floor") fail_render("round: method must be common, ceil or floor");
  Heap& heap = interpreter.heap();
  const Value factor = compute(heap, BinaryOperator::kPower, Integer{10}, precision);
  const double scaled = *compute(heap, BinaryOperator::kMultiply, input, factor).number();
  if (!std::isfinite(scaled)) fail_render("cannot convert float {} to integer", print_number(scaled));
  return compute(heap, BinaryOperator::kDivide, method == "ceil" ? std::ceil(scaled) : std::floor(scaled),
                 factor);
}

Value sum(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("sum", arguments, {"attribute", "start"}, 0);
  Heap& heap = interpreter.heap();
  Value total = bound.find(1) ? bound.at(1) : Value(0);
  if (total.text()) fail_render("sum() can't sum strings");
  ItemReader reader(heap, input);
  while (auto item = reader.next()) {
    const Value value = bound.find_some(0) ? follow_path(heap, *item, bound.at(0)) : *item;
    total = compute(heap, BinaryOperator::kAdd, total, value);
  }
  return total;
}

constexpr std::array<FilterEntry, 5> kFilters = {
    {{"int", to_integer}, {"float", to_float}, {"abs", absolute}, {"round", round_number}, {"sum", sum}}};

}  // namespace

std::span<const FilterEntry> number_filters() {
  return kFilters;
}

}  // namespace assay::tokenizer_internal::jinja
