// Evaluates expressions.
#include <fmt/core.h>

#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/interpreter.h"

namespace assay::tokenizer_internal::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  const DepthGuard guard(heap_.budget());
  heap_.budget().spend();
  line_ = expression.line;
  return std::visit([this](const auto& node) { return evaluate(node); }, expression.node);
}

Value Interpreter::evaluate(const Constant& node) {
  return node.value;
}

Value Interpreter::evaluate(const Name& node) {
  return find_variable(node.name);
}

Value Interpreter::evaluate(const SequenceLiteral& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const auto& item : node.items) items.push_back(evaluate(*item));
  return node.kind == SequenceKind::kList ? heap_.list(std::move(items)) : heap_.tuple(std::move(items));
}

Value Interpreter::evaluate(const DictLiteral& node) {
  Dict* dict = heap_.make<Dict>();
  heap_.reserve_values(2 * node.entries.size());
  for (const auto& [key, value] : node.entries) {
    const Value evaluated_key = evaluate(*key);
    dict->set(evaluated_key, evaluate(*value));
  }
  return dict;
}

Value Interpreter::evaluate(const Attribute& node) {
  return get_attribute(heap_, evaluate(*node.object), node.name);
}

Value Interpreter::evaluate(const Subscript& node) {
  const Value object = evaluate(*node.object);
  return get_item(heap_, object, evaluate(*node.key));
}

Value Interpreter::evaluate(const Slice& node) {
  const Value object = evaluate(*node.object);
  const Value start = node.start ? evaluate(*node.start) : Value(None{});
  const Value stop = node.stop ? evaluate(*node.stop) : Value(None{});
  return get_slice(heap_, object, start, stop, node.step ? evaluate(*node.step) : Value(None{}));
}

Arguments Interpreter::evaluate_arguments(const CallArguments& node) {
  Arguments arguments;
  for (const auto& value : node.positional) arguments.positional.push_back(evaluate(*value));
  for (const auto& [name, value] : node.named) arguments.named.emplace_back(name, evaluate(*value));
  if (node.unpacked) {
    std::vector<Value> items = collect(heap_, evaluate(*node.unpacked));
    heap_.reserve_values(items.size());
    arguments.positional.insert(arguments.positional.end(), items.begin(), items.end());
  }
  if (node.unpacked_named) {
    const Value unpacked = evaluate(*node.unpacked_named);
    const auto* dict = unpacked.as<Dict>();
    if (!dict) fail_render("argument after ** must be a mapping, not {}", type_name(unpacked));
    for (const auto& [key, value] : dict->entries) {
      if (!key.text()) fail_render("keywords must be strings");
      for (const auto& [name, other] : node.named) {
        if (name == key.text()->bytes) fail_render("got multiple values for keyword argument '{}'", name);
      }
      heap_.budget().spend();
      arguments.named.emplace_back(key.text()->bytes, value);
    }
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Call& node, const Value* caller) {
  const Value callee = evaluate(*node.callee);
  Arguments arguments = evaluate_arguments(node.arguments);
  if (caller) arguments.named.emplace_back("caller", *caller);
  return call(callee, std::move(arguments));
}

Value Interpreter::evaluate(const Call& node) {
  return evaluate_call(node, nullptr);
}

Value Interpreter::evaluate(const Filter& node) {
  const int line = line_;
  const Value input = node.input ? evaluate(*node.input) : *block_text_;
  const Arguments arguments = evaluate_arguments(node.arguments);
  line_ = line;
  return apply_filter(node.name, input, arguments);
}

Value Interpreter::evaluate(const Test& node) {
  const int line = line_;
  const Value input = evaluate(*node.input);
  const Arguments arguments = evaluate_arguments(node.arguments);
  line_ = line;
  return apply_test(node.name, input, arguments);
}

Value Interpreter::apply_filter(std::string_view name, const Value& input, const Arguments& arguments) {
  const FilterFunction filter = find_filter(name);
  if (!filter) fail_unsupported("no filter named '{}'", name);
  heap_.budget().spend();
  return filter(*this, input, arguments);
}

bool Interpreter::apply_test(std::string_view name, const Value& input, const Arguments& arguments) {
  const TestFunction test = find_test(name);
  if (!test) fail_unsupported("no test named '{}'", name);
  heap_.budget().spend();
  return test(*this, input, arguments);
}

Value Interpreter::evaluate(const Unary& node) {
  const Value operand = evaluate(*node.operand);
  switch (node.op) {
    case UnaryOperator::kNot:
      return !truth(operand);
    case UnaryOperator::kNegate:
      return negate(operand);
    case UnaryOperator::kPlus:
      return plus(operand);
    case UnaryOperator::kCount:
      break;
  }
  return operand;
}

Value Interpreter::evaluate(const Binary& node) {
  const int line = line_;
  const Value left = evaluate(*node.left);
  const Value right = evaluate(*node.right);
  line_ = line;
  return compute(heap_, node.op, left, right);
}

Value Interpreter::evaluate(const Logical& node) {
  Value left = evaluate(*node.left);
  return truth(left) == node.is_and ? evaluate(*node.right) : left;
}

Value Interpreter::evaluate(const Concatenation& node) {
  std::string text;
  for (const auto& part : node.parts) {
    const Value value = evaluate(*part);
    if (const TextBody* body = value.text()) {
      text += body->bytes;
    } else {
      text += print(heap_, value);
    }
    if (text.size() > kMaxHeapBytes) fail_limit("a text is longer than {} MiB", kMaxHeapBytes >> 20);
  }
  return heap_.text(std::move(text));
}

bool Interpreter::compare(Comparison comparison, const Value& a, const Value& b) {
  switch (comparison) {
    case Comparison::kEqual:
      return equal(heap_, a, b);
    case Comparison::kNotEqual:
      return !equal(heap_, a, b);
    case Comparison::kLess:
      return less(heap_, a, b);
    case Comparison::kLessEqual:
      return less(heap_, a, b) || equal(heap_, a, b);
    case Comparison::kGreater:
      return less(heap_, b, a);
    case Comparison::kGreaterEqual:
      return less(heap_, b, a) || equal(heap_, a, b);
    case Comparison::kIn:
      return contains(heap_, b, a);
    case Comparison::kNotIn:
      return !contains(heap_, b, a);
    case Comparison::kCount:
      break;
  }
  return false;
}

// a < b < c means a < b and b < c, each evaluated once.
Value Interpreter::evaluate(const Compare& node) {
  const int line = line_;
  Value left = evaluate(*node.first);
  for (const auto& [comparison, operand] : node.rest) {
    Value right = evaluate(*operand);
    line_ = line;
    if (!compare(comparison, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate(const Conditional& node) {
  const int line = line_;
  if (truth(evaluate(*node.condition))) return evaluate(*node.then);
  if (node.otherwise) return evaluate(*node.otherwise);
  return undefined_because(fmt::format(
      "the inline if-expression on line {} evaluated to false and no else section was defined", line));
}

}  // namespace assay::tokenizer_internal::jinja
