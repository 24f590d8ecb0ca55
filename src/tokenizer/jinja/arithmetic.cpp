// Python's arithmetic on numbers, and + * % on texts and sequences.
#include <cmath>

#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/operations.h"

namespace assay::tokenizer_internal::jinja {
namespace {

constexpr Integer kMaxRepeatedBytes = Integer{kMaxHeapBytes};

std::string_view symbol(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kAdd:
      return "+";
    case BinaryOperator::kSubtract:
      return "-";
    case BinaryOperator::kMultiply:
      return "*";
    case BinaryOperator::kDivide:
      return "/";
    case BinaryOperator::kFloorDivide:
      return "//";
    case BinaryOperator::kModulo:
      return "%";
    case BinaryOperator::kPower:
      return "** or pow()";
    case BinaryOperator::kCount:
      break;
  }
  return "?";
}

[[noreturn]] void fail_overflow() {
  fail_unsupported("integer result does not fit into 128 bits");
}

Integer floor_divide(Integer a, Integer b) {
  if (b == 0) fail_render("integer division or modulo by zero");
  if (b == -1) {
    Integer result;
    if (__builtin_sub_overflow(Integer{0}, a, &result)) fail_overflow();
    return result;
  }
  Integer quotient = a / b;
  if (a % b != 0 && (a < 0) != (b < 0)) --quotient;
  return quotient;
}

Integer modulo(Integer a, Integer b) {
  if (b == 0) fail_render("integer division or modulo by zero");
  if (b == -1) return 0;
  const Integer remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double modulo(double a, double b) {
  if (b == 0) fail_render("float modulo");
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double floor_divide(double a, double b) {
  if (b == 0) fail_render("float floor division by zero");
  return std::floor((a - modulo(a, b)) / b + 0.5);  // the quotient is whole up to rounding
}

Value power(Integer base, Integer exponent) {
  if (exponent < 0) {
    if (base == 0) fail_render("0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  if (base == 0 || base == 1) return exponent == 0 ? Integer{1} : base;
  if (base == -1) return exponent % 2 == 0 ? Integer{1} : Integer{-1};
  Integer result = 1;
  for (Integer i = 0; i < exponent; ++i) {  // at most 127 rounds before it overflows
    if (__builtin_mul_overflow(result, base, &result)) fail_overflow();
  }
  return result;
}

Value compute_integers(BinaryOperator op, Integer a, Integer b) {
  Integer result = 0;
  switch (op) {
    case BinaryOperator::kAdd:
      if (__builtin_add_overflow(a, b, &result)) fail_overflow();
      return result;
    case BinaryOperator::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) fail_overflow();
      return result;
    case BinaryOperator::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
      return result;
    case BinaryOperator::kDivide:
      if (b == 0) fail_render("division by zero");
      return static_cast<double>(a) / static_cast<double>(b);
    case BinaryOperator::kFloorDivide:
      return floor_divide(a, b);
    case BinaryOperator::kModulo:
      return modulo(a, b);
    case BinaryOperator::kPower:
      return power(a, b);
    case BinaryOperator::kCount:
      break;
  }
  return result;
}

Value compute_reals(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd:
      return a + b;
    case BinaryOperator::kSubtract:
      return a - b;
    case BinaryOperator::kMultiply:
      return a * b;
    case BinaryOperator::kDivide:
      if (b == 0) fail_render("float division by zero");
      return a / b;
    case BinaryOperator::kFloorDivide:
      return floor_divide(a, b);
    case BinaryOperator::kModulo:
      return modulo(a, b);
    case BinaryOperator::kPower: {
      if (a == 0 && b < 0) fail_render("0.0 cannot be raised to a negative power");
      if (a < 0 && b != std::floor(b)) fail_unsupported("complex numbers are not supported");
      const double result = std::pow(a, b);
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
        fail_render("numerical result out of range");
      return result;
    }
    case BinaryOperator::kCount:
      break;
  }
  return a;
}

Value add_texts(Heap& heap, const TextBody& a, const TextBody& b) {
  if (a.markup == b.markup) return heap.text(a.bytes + b.bytes, a.markup);
  return a.markup ? heap.text(a.bytes + escape_html(b.bytes), true)
                  : heap.text(escape_html(a.bytes) + b.bytes, true);
}

Value repeat_text(Heap& heap, const TextBody& text, Integer times) {
  if (times <= 0 || text.bytes.empty()) return heap.text("", text.markup);
  if (times > kMaxRepeatedBytes / static_cast<Integer>(text.bytes.size())) {
    fail_limit("a repeated text is longer than {} MiB", kMaxHeapBytes >> 20);
  }
  std::string out;
  out.reserve(text.bytes.size() * static_cast<size_t>(times));
  for (Integer i = 0; i < times; ++i) out += text.bytes;
  return heap.text(std::move(out), text.markup);
}

Value make_sequence(Heap& heap, SequenceKind kind, std::vector<Value> items) {
  return kind == SequenceKind::kList ? heap.list(std::move(items)) : heap.tuple(std::move(items));
}

Value repeat_sequence(Heap& heap, const Sequence& sequence, Integer times) {
  std::vector<Value> out;
  if (times > 0 && !sequence.items.empty()) {
    const auto size = static_cast<Integer>(sequence.items.size());
    if (times > kMaxRepeatedBytes / size / static_cast<Integer>(sizeof(Value))) {
      fail_limit("a repeated list needs more than {} MiB", kMaxHeapBytes >> 20);
    }
    heap.budget().spend(static_cast<uint64_t>(size * times));
    for (Integer i = 0; i < times; ++i) out.insert(out.end(), sequence.items.begin(), sequence.items.end());
  }
  return make_sequence(heap, sequence.kind, std::move(out));
}

Value concatenate(Heap& heap, const Sequence& a, const Sequence& b) {
  heap.budget().spend(a.items.size() + b.items.size());
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return make_sequence(heap, a.kind, std::move(items));
}

std::optional<Value> compute_others(Heap& heap, BinaryOperator op, const Value& a, const Value& b) {
  const TextBody *left = a.text(), *right = b.text();
  const auto *first = a.as<Sequence>(), *second = b.as<Sequence>();
  if (op == BinaryOperator::kAdd) {
    if (left && right) return add_texts(heap, *left, *right);
    if (first && second && first->kind == second->kind) return concatenate(heap, *first, *second);
  }
  if (op == BinaryOperator::kMultiply) {
    if (left && b.whole_number()) return repeat_text(heap, *left, *b.whole_number());
    if (right && a.whole_number()) return repeat_text(heap, *right, *a.whole_number());
    if (first && b.whole_number()) return repeat_sequence(heap, *first, *b.whole_number());
    if (second && a.whole_number()) return repeat_sequence(heap, *second, *a.whole_number());
  }
  if (op == BinaryOperator::kModulo && left) return format_percent(heap, *left, b);
  return std::nullopt;
}

}  // namespace

Value compute(Heap& heap, BinaryOperator op, const Value& a, const Value& b) {
  heap.budget().spend();
  if (!(op == BinaryOperator::kModulo && a.is_text())) require_defined(b);  // '%s' % undefined prints nothing
  require_defined(a);
  if (a.whole_number() && b.whole_number()) return compute_integers(op, *a.whole_number(), *b.whole_number());
  if (a.number() && b.number()) return compute_reals(op, *a.number(), *b.number());
  if (auto result = compute_others(heap, op, a, b)) return *result;
  if (op == BinaryOperator::kAdd && a.is_text()) {
    fail_render("can only concatenate str (not \"{}\") to str", type_name(b));
  }
  fail_render("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op), type_name(a), type_name(b));
}

Value negate(const Value& value) {
  require_defined(value);
  if (auto whole = value.whole_number()) {
    Integer result;
    if (__builtin_sub_overflow(Integer{0}, *whole, &result)) fail_overflow();
    return result;
  }
  if (const double* real = value.real()) return -*real;
  fail_render("bad operand type for unary -: '{}'", type_name(value));
}

Value plus(const Value& value) {
  require_defined(value);
  if (auto whole = value.whole_number()) return *whole;
  if (const double* real = value.real()) return *real;
  fail_render("bad operand type for unary +: '{}'", type_name(value));
}

}  // namespace assay::tokenizer_internal::jinja
