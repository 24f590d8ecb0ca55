#include "tokenizer/jinja/interpreter.h"

#include <fmt/core.h>

#include "tokenizer/jinja/loop.h"
#include "tokenizer/jinja/macro.h"

namespace assay::tokenizer_internal::jinja {

Value* Scope::find(std::string_view name) {
  for (auto& [variable, value] : variables) {
    if (variable == name) return &value;
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  if (Value* found = find(name)) {
    *found = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

std::string Interpreter::render(const Template& tree) {
  std::string out;
  out_ = &out;
  open_scope(nullptr, tree.hidden);
  execute(tree.body);
  return out;
}

Scope* Interpreter::open_scope(Scope* enclosing, const HiddenNames& hidden) {
  Scope* scope = heap_.make<Scope>(enclosing);
  hide(*scope, hidden);
  return std::exchange(scope_, scope);
}

void Interpreter::hide(Scope& scope, const HiddenNames& names) {
  heap_.reserve_values(names.size());
  for (const std::string& name : names)
    scope.set(name, undefined_because(fmt::format("'{}' is undefined", name)));
}

void Interpreter::write(std::string_view text) {
  heap_.budget().spend_bytes(text.size());
  if (text.size() > kMaxOutputBytes - buffered_bytes_) {
    fail_limit("the output is longer than {} MiB", kMaxOutputBytes >> 20);
  }
  buffered_bytes_ += text.size();
  *out_ += text;
}

std::optional<std::string> Interpreter::capture(const Block& block, const HiddenNames& hidden, Flow& flow) {
  std::string text;
  std::string* const outer_out = std::exchange(out_, &text);
  Scope* const outer_scope = open_scope(scope_, hidden);
  flow = execute(block);
  scope_ = outer_scope;
  out_ = outer_out;
  buffered_bytes_ -= text.size();
  if (flow != Flow::kNormal) return std::nullopt;
  return text;
}

std::string Interpreter::render_macro_body(const MacroDefinition& definition, Scope* scope) {
  std::string text;
  std::string* const outer_out = std::exchange(out_, &text);
  Scope* const outer_scope = std::exchange(scope_, scope);
  hide(*scope, definition.hidden);
  execute(*definition.body);
  scope_ = outer_scope;
  out_ = outer_out;
  buffered_bytes_ -= text.size();
  return text;
}

Interpreter::Flow Interpreter::execute(const Block& block) {
  const DepthGuard guard(heap_.budget());
  for (const Statement& statement : block) {
    const Flow flow = execute(statement);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  heap_.budget().spend();
  line_ = statement.line;
  return std::visit([this](const auto& node) { return execute(node); }, statement.node);
}

Interpreter::Flow Interpreter::execute(const Output& node) {
  if (!node.expression) {
    write(node.text);
    return Flow::kNormal;
  }
  const Value value = evaluate(*node.expression);
  if (const TextBody* text = value.text()) {
    write(text->bytes);
  } else {
    write(print(heap_, value));
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const For& node) {
  const Value iterable = evaluate(*node.iterable);
  if (node.recursive) {
    write(render_recursive_loop(node, iterable, scope_, 0).text()->bytes);
    return Flow::kNormal;
  }
  return run_loop(*heap_.make<LoopObject>(*this, node, iterable, scope_, 0));
}

Value Interpreter::render_recursive_loop(const For& node, const Value& iterable, Scope* outer,
                                         size_t depth0) {
  const DepthGuard guard(heap_.budget());
  std::string text;
  std::string* const outer_out = std::exchange(out_, &text);
  Scope* const outer_scope = std::exchange(scope_, outer);
  run_loop(*heap_.make<LoopObject>(*this, node, iterable, outer, depth0));
  scope_ = outer_scope;
  out_ = outer_out;
  buffered_bytes_ -= text.size();
  return heap_.text(std::move(text));
}

Interpreter::Flow Interpreter::run_loop(LoopObject& loop) {
  const For& node = loop.node();
  Scope* const outer = scope_;
  Scope* body_scope = nullptr;
  bool completed = false;  // an iteration that `break` or `continue` leaves does not count for `else`
  while (loop.advance()) {
    heap_.budget().spend();
    if (!body_scope || body_scope->captured) body_scope = heap_.make<Scope>(outer);
    body_scope->variables.clear();
    scope_ = body_scope;
    scope_->set("loop", &loop);
    hide(*scope_, node.hidden);
    assign(node.target, loop.current());
    const Flow flow = execute(*node.body);
    scope_ = outer;
    if (flow == Flow::kBreak) break;
    if (flow == Flow::kNormal) completed = true;
  }
  if (completed || !node.otherwise) return Flow::kNormal;
  open_scope(outer, node.otherwise_hidden);
  const Flow flow = execute(*node.otherwise);  // a loop control in there means the loop around
  scope_ = outer;
  return flow;
}

Interpreter::Flow Interpreter::execute(const If& node) {
  for (const auto& [condition, body] : node.branches) {
    if (truth(evaluate(*condition))) return execute(body);
  }
  return node.otherwise ? execute(*node.otherwise) : Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const Assign& node) {
  assign(node.target, evaluate(*node.value));
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const AssignBlock& node) {
  Flow flow = Flow::kNormal;
  auto captured = capture(*node.body, node.hidden, flow);
  if (!captured) return flow;
  Value text = heap_.text(std::move(*captured));
  if (node.filter) {
    const Value* const outer = std::exchange(block_text_, &text);
    const Value filtered = evaluate(*node.filter);
    block_text_ = outer;
    text = filtered;
  }
  assign(node.target, text);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const With& node) {
  std::vector<Value> values;  // all seen from outside, before any is assigned
  for (const auto& [target, value] : node.assignments) values.push_back(evaluate(*value));
  Scope* const outer = open_scope(scope_, node.hidden);
  for (size_t i = 0; i < values.size(); ++i) assign(node.assignments[i].first, values[i]);
  const Flow flow = execute(*node.body);
  scope_ = outer;
  return flow;
}

Value Interpreter::make_macro(const MacroDefinition& definition) {
  for (Scope* scope = scope_; scope && !scope->captured; scope = scope->parent) scope->captured = true;
  return heap_.make<MacroObject>(definition, scope_);
}

Interpreter::Flow Interpreter::execute(const Macro& node) {
  heap_.reserve_values(1);
  scope_->set(node.definition.name, make_macro(node.definition));
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const CallBlock& node) {
  const Value caller = make_macro(node.caller);
  const Value result = evaluate_call(std::get<Call>(node.call->node), &caller);
  write(print(heap_, result));
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const FilterBlock& node) {
  Flow flow = Flow::kNormal;
  auto captured = capture(*node.body, node.hidden, flow);
  if (!captured) return flow;
  const Value text = heap_.text(std::move(*captured));
  const Value* const outer = std::exchange(block_text_, &text);
  const Value filtered = evaluate(*node.filter);
  block_text_ = outer;
  if (!filtered.text()) fail_render("a filter block must give a string, not {}", type_name(filtered));
  write(filtered.text()->bytes);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const Scoped& node) {
  Scope* enclosing = scope_;
  if (!node.sees_enclosing) {
    while (enclosing->parent) enclosing = enclosing->parent;
  }
  Scope* const outer = open_scope(enclosing, node.hidden);
  const Flow flow = execute(*node.body);
  scope_ = outer;
  return flow;
}

Interpreter::Flow Interpreter::execute(const LoopControl& node) {
  return node.is_break ? Flow::kBreak : Flow::kContinue;
}

Value Interpreter::find_variable(std::string_view name) {
  for (Scope* scope = scope_; scope; scope = scope->parent) {
    if (const Value* found = scope->find(name)) return *found;
  }
  if (const Value* found = context_.find(name)) return *found;
  if (const Value* found = globals_.find(name)) return *found;
  if (auto made = make_global(heap_, name)) {
    globals_.set(heap_.text(std::string(name)), *made);
    return *made;
  }
  return undefined_because(fmt::format("'{}' is undefined", name));
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (const auto* name = std::get_if<std::string>(&target.node)) {
    heap_.reserve_values(scope_->find(*name) ? 0 : 1);
    scope_->set(*name, value);
  } else if (const auto* tuple = std::get_if<TupleTarget>(&target.node)) {
    assign_items(*tuple, value);
  } else {
    const auto& attribute = std::get<NamespaceTarget>(target.node);
    auto* space = find_variable(attribute.name).as<Namespace>();
    if (!space) fail_render("cannot assign an attribute of '{}': it is no namespace", attribute.name);
    heap_.reserve_values(2);
    space->attributes.set(heap_.text(attribute.attribute), value);
  }
}

void Interpreter::assign_items(const TupleTarget& target, const Value& value) {
  require_defined(value);
  const std::vector<Value> items = collect(heap_, value);
  if (items.size() != target.items.size()) {
    fail_render("expected {} values to unpack, found {}", target.items.size(), items.size());
  }
  for (size_t i = 0; i < items.size(); ++i) assign(target.items[i], items[i]);
}

Value Interpreter::call(const Value& callee, Arguments arguments) {
  require_defined(callee);
  auto* callable = callee.as<Callable>();
  if (!callable) fail_render("'{}' object is not callable", type_name(callee));
  const DepthGuard guard(heap_.budget());
  heap_.budget().spend();
  return callable->call(*this, std::move(arguments));
}

}  // namespace assay::tokenizer_internal::jinja
