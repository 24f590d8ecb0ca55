// The syntax tree of a template. Immutable once parsed; shared by parallel renderings. Internal to the
// template engine.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;  // null where the grammar lets a part be left out
using Block = std::vector<Statement>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr unpacked;        // *args
  ExpressionPtr unpacked_named;  // **kwargs
};

struct Constant {
  Value value;
};
struct Name {
  std::string name;
};
struct SequenceLiteral {
  SequenceKind kind;
  std::vector<ExpressionPtr> items;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
struct Subscript {
  ExpressionPtr object, key;
};
struct Slice {
  ExpressionPtr object, start, stop, step;
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct Filter {
  ExpressionPtr input;  // null in filter blocks and block assignments: the text of the block
  std::string name;
  CallArguments arguments;
};
struct Test {
  ExpressionPtr input;
  std::string name;
  CallArguments arguments;
};
enum class UnaryOperator { kNot, kNegate, kPlus, kCount };
struct Unary {
  UnaryOperator op;
  ExpressionPtr operand;
};
struct Binary {
  BinaryOperator op;
  ExpressionPtr left, right;
};
struct Logical {
  bool is_and;
  ExpressionPtr left, right;
};
struct Concatenation {
  std::vector<ExpressionPtr> parts;
};
enum class Comparison { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn, kCount };
struct Compare {
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};
struct Conditional {
  ExpressionPtr condition, then, otherwise;  // `otherwise` may be null
};

struct Expression {
  std::variant<Constant, Name, SequenceLiteral, DictLiteral, Attribute, Subscript, Slice, Call, Filter, Test,
               Unary, Binary, Logical, Concatenation, Compare, Conditional>
      node;
  int line = 0;
  int depth = 1;  // levels of expressions below, this one included
};

// What can stand on the left of `=`, after `for`, and in a macro's signature.
struct NamespaceTarget {
  std::string name, attribute;
};
struct Target;
struct TupleTarget {
  std::vector<Target> items;
};
struct Target {
  std::variant<std::string, TupleTarget, NamespaceTarget> node;
  int line = 0;
};

// The names that a scope hides until it assigns them; see scope_analysis.h.
using HiddenNames = std::vector<std::string>;

struct Parameter {
  std::string name;
  ExpressionPtr fallback;  // null: none
};
// What macros and the bodies of call blocks share. The special variables count only where the body mentions
// them.
struct MacroDefinition {
  std::string name;  // empty for a call block
  std::vector<Parameter> parameters;
  Block* body = nullptr;
  HiddenNames hidden;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
};

struct Output {
  std::string text;  // template data, when there is no expression
  ExpressionPtr expression;
};
struct For {
  Target target;
  ExpressionPtr iterable, condition;  // the condition may be null
  bool recursive;
  std::unique_ptr<Block> body, otherwise;
  HiddenNames hidden, otherwise_hidden;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Block>> branches;
  std::unique_ptr<Block> otherwise;
};
struct Assign {
  Target target;
  ExpressionPtr value;
};
struct AssignBlock {
  Target target;
  ExpressionPtr filter;  // null: none
  std::unique_ptr<Block> body;
  HiddenNames hidden;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  std::unique_ptr<Block> body;
  HiddenNames hidden;
};
struct Macro {
  MacroDefinition definition;
  std::unique_ptr<Block> body;
};
struct CallBlock {
  MacroDefinition caller;
  ExpressionPtr call;  // a Call
  std::unique_ptr<Block> body;
};
struct FilterBlock {
  ExpressionPtr filter;
  std::unique_ptr<Block> body;
  HiddenNames hidden;
};
struct Scoped {  // `generation` and `block`: rendered in place, with a scope of their own
  bool sees_enclosing;
  std::unique_ptr<Block> body;
  HiddenNames hidden;
};
struct LoopControl {
  bool is_break;
};

struct Statement {
  std::variant<Output, For, If, Assign, AssignBlock, With, Macro, CallBlock, FilterBlock, Scoped, LoopControl>
      node;
  int line = 0;
};

struct Template {
  Block body;
  HiddenNames hidden;
};

}  // namespace assay::tokenizer_internal::jinja
