// Renders a syntax tree. One Interpreter per rendering; the tree is only read. Internal to the template
// engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

// The variables of a loop body, macro or block. Lives in the Heap, since macros keep the scope they were
// written in.
struct Scope : Object {
  explicit Scope(Scope* enclosing) : parent(enclosing) {}
  std::string_view type_name() const override { return "scope"; }
  Value* find(std::string_view name);
  void set(std::string_view name, Value value);

  Scope* const parent;
  bool captured = false;  // a macro refers to it, so that it must not be reused
  std::vector<std::pair<std::string_view, Value>> variables;  // names belong to the syntax tree
};

class LoopObject;

class Interpreter {
 public:
  // `now` is what strftime_now() formats, in seconds since 1970.
  Interpreter(Heap& heap, const Dict& context, int64_t now) : heap_(heap), context_(context), now_(now) {}

  std::string render(const Template& tree);

  Heap& heap() { return heap_; }
  int64_t now() const { return now_; }
  int line() const { return line_; }  // where it was when it failed

  Value call(const Value& callee, Arguments arguments);
  Value apply_filter(std::string_view name, const Value& input, const Arguments& arguments);
  bool apply_test(std::string_view name, const Value& input, const Arguments& arguments);

 private:
  friend class LoopObject;
  friend class MacroObject;
  enum class Flow { kNormal, kBreak, kContinue };

  // Statements (interpreter.cpp).
  Flow execute(const Block& block);
  Flow execute(const Statement& statement);
  Flow execute(const Output& node);
  Flow execute(const For& node);
  Flow execute(const If& node);
  Flow execute(const Assign& node);
  Flow execute(const AssignBlock& node);
  Flow execute(const With& node);
  Flow execute(const Macro& node);
  Flow execute(const CallBlock& node);
  Flow execute(const FilterBlock& node);
  Flow execute(const Scoped& node);
  Flow execute(const LoopControl& node);
  Flow run_loop(LoopObject& loop);
  Value render_recursive_loop(const For& node, const Value& iterable, Scope* outer, size_t depth0);
  std::string render_macro_body(const MacroDefinition& definition, Scope* scope);
  void write(std::string_view text);
  // Executes the block in a scope of its own and returns what it wrote, or nothing when a loop control left
  // it.
  std::optional<std::string> capture(const Block& block, const HiddenNames& hidden, Flow& flow);
  // Makes a new scope the current one; returns the one that was, for the caller to put back.
  Scope* open_scope(Scope* enclosing, const HiddenNames& hidden);
  void hide(Scope& scope, const HiddenNames& names);

  // Variables.
  Value find_variable(std::string_view name);
  void assign(const Target& target, const Value& value);
  void assign_items(const TupleTarget& target, const Value& value);
  Value make_macro(const MacroDefinition& definition);

  // Expressions (evaluate.cpp).
  Value evaluate(const Expression& expression);
  Value evaluate(const Constant& node);
  Value evaluate(const Name& node);
  Value evaluate(const SequenceLiteral& node);
  Value evaluate(const DictLiteral& node);
  Value evaluate(const Attribute& node);
  Value evaluate(const Subscript& node);
  Value evaluate(const Slice& node);
  Value evaluate(const Call& node);
  Value evaluate(const Filter& node);
  Value evaluate(const Test& node);
  Value evaluate(const Unary& node);
  Value evaluate(const Binary& node);
  Value evaluate(const Logical& node);
  Value evaluate(const Concatenation& node);
  Value evaluate(const Compare& node);
  Value evaluate(const Conditional& node);
  Value evaluate_call(const Call& node, const Value* caller);
  bool compare(Comparison comparison, const Value& a, const Value& b);
  Arguments evaluate_arguments(const CallArguments& node);

  Heap& heap_;
  const Dict& context_;
  const int64_t now_;
  Dict globals_;
  Scope* scope_ = nullptr;
  std::string* out_ = nullptr;
  uint64_t buffered_bytes_ = 0;        // in all buffers that are being written
  const Value* block_text_ = nullptr;  // what a filter without an input applies to
  int line_ = 1;
};

// range, dict, namespace, cycler, joiner, raise_exception, strftime_now; nothing for other names.
std::optional<Value> make_global(Heap& heap, std::string_view name);

}  // namespace assay::tokenizer_internal::jinja
