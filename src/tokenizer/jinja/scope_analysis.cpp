#include "tokenizer/jinja/scope_analysis.h"

#include <array>
#include <map>
#include <set>
#include <string_view>

namespace assay::tokenizer_internal::jinja {
namespace {

enum class Origin {
  kParameter,
  kOutside,  // an enclosing scope or the context
  kHidden    // undefined until it is assigned
};

// What is known of the names of one scope, up to a point of its text. The branches of an `if` each continue
// from a common base and are merged afterwards.
class Symbols {
 public:
  Symbols(const Symbols* enclosing, const Symbols* base) : enclosing_(enclosing), base_(base) {}

  void declare(std::string_view name) {
    assigned_.insert(name);
    origins_[name] = Origin::kParameter;
  }
  void read(std::string_view name) {
    if (!knows(name)) origins_[name] = Origin::kOutside;
  }
  void assign(std::string_view name) {
    if (!is_assigned(name)) assigned_.insert(name);
    if (!knows_here(name)) origins_[name] = known_outside(name) ? Origin::kOutside : Origin::kHidden;
  }

  // A name that only some branches assign keeps what is outside.
  void merge(const std::array<Symbols, 3>& branches) {
    std::map<std::string_view, size_t> counts;
    for (const Symbols& branch : branches) {
      for (std::string_view name : branch.assigned_) ++counts[name];
      for (const auto& [name, origin] : branch.origins_) origins_[name] = origin;
    }
    for (const auto& [name, count] : counts) {
      assigned_.insert(name);
      if (count < branches.size()) origins_[name] = Origin::kOutside;
    }
  }

  std::vector<std::string> hidden() const {
    std::vector<std::string> names;
    for (const auto& [name, origin] : origins_) {
      if (origin == Origin::kHidden) names.emplace_back(name);
    }
    return names;
  }
  const Symbols* enclosing() const { return enclosing_; }

 private:
  bool knows_here(std::string_view name) const {
    for (const Symbols* s = this; s; s = s->base_) {
      if (s->origins_.contains(name)) return true;
    }
    return false;
  }
  bool known_outside(std::string_view name) const { return enclosing_ && enclosing_->knows(name); }
  bool knows(std::string_view name) const { return knows_here(name) || known_outside(name); }
  bool is_assigned(std::string_view name) const {
    for (const Symbols* s = this; s; s = s->base_) {
      if (s->assigned_.contains(name)) return true;
    }
    return false;
  }

  const Symbols* enclosing_;
  const Symbols* base_;
  std::map<std::string_view, Origin> origins_;
  std::set<std::string_view> assigned_;
};

// Notes every name that an expression reads.
struct ExpressionReader {
  Symbols& symbols;

  void see(const ExpressionPtr& part) {
    if (part) std::visit(*this, part->node);
  }
  void see(const std::vector<ExpressionPtr>& parts) {
    for (const auto& part : parts) see(part);
  }
  void see(const CallArguments& arguments) {
    see(arguments.positional);
    for (const auto& [name, value] : arguments.named) see(value);
    see(arguments.unpacked);
    see(arguments.unpacked_named);
  }

  void operator()(const Constant&) {}
  void operator()(const Name& node) { symbols.read(node.name); }
  void operator()(const SequenceLiteral& node) { see(node.items); }
  void operator()(const DictLiteral& node) {
    for (const auto& [key, value] : node.entries) {
      see(key);
      see(value);
    }
  }
  void operator()(const Attribute& node) { see(node.object); }
  void operator()(const Subscript& node) {
    see(node.object);
    see(node.key);
  }
  void operator()(const Slice& node) {
    see(node.object);
    see(node.start);
    see(node.stop);
    see(node.step);
  }
  void operator()(const Call& node) {
    see(node.callee);
    see(node.arguments);
  }
  void operator()(const Filter& node) {
    see(node.input);
    see(node.arguments);
  }
  void operator()(const Test& node) {
    see(node.input);
    see(node.arguments);
  }
  void operator()(const Unary& node) { see(node.operand); }
  void operator()(const Binary& node) {
    see(node.left);
    see(node.right);
  }
  void operator()(const Logical& node) {
    see(node.left);
    see(node.right);
  }
  void operator()(const Concatenation& node) { see(node.parts); }
  void operator()(const Compare& node) {
    see(node.first);
    for (const auto& [comparison, operand] : node.rest) see(operand);
  }
  void operator()(const Conditional& node) {
    see(node.condition);
    see(node.then);
    see(node.otherwise);
  }
};

void read(Symbols& symbols, const ExpressionPtr& expression) {
  ExpressionReader{symbols}.see(expression);
}

void assign(Symbols& symbols, const Target& target) {
  if (const auto* name = std::get_if<std::string>(&target.node)) {
    symbols.assign(*name);
  } else if (const auto* tuple = std::get_if<TupleTarget>(&target.node)) {
    for (const Target& item : tuple->items) assign(symbols, item);
  } else {
    symbols.read(std::get<NamespaceTarget>(target.node).name);
  }
}

void declare(Symbols& symbols, const Target& target) {
  if (const auto* name = std::get_if<std::string>(&target.node)) {
    symbols.declare(*name);
  } else if (const auto* tuple = std::get_if<TupleTarget>(&target.node)) {
    for (const Target& item : tuple->items) declare(symbols, item);
  }
}

// First pass over one scope: the statements that run in it, without the scopes inside.
struct ScopeReader {
  Symbols& symbols;

  void see(const Block& block) {
    for (const Statement& statement : block) std::visit(*this, statement.node);
  }

  void operator()(const Output& node) { read(symbols, node.expression); }
  void operator()(const For& node) { read(symbols, node.iterable); }
  void operator()(const If& node) {
    read(symbols, node.branches.front().first);
    std::array<Symbols, 3> parts = {fork(), fork(), fork()};
    ScopeReader{parts[0]}.see(node.branches.front().second);
    for (size_t i = 1; i < node.branches.size(); ++i) see_elif(parts[1], node.branches[i]);
    if (node.otherwise) ScopeReader{parts[2]}.see(*node.otherwise);
    symbols.merge(parts);
  }
  void operator()(const Assign& node) {
    read(symbols, node.value);
    assign(symbols, node.target);
  }
  void operator()(const AssignBlock& node) { assign(symbols, node.target); }
  void operator()(const With& node) {
    for (const auto& [target, value] : node.assignments) read(symbols, value);
  }
  void operator()(const Macro& node) { symbols.assign(node.definition.name); }
  void operator()(const CallBlock& node) { read(symbols, node.call); }
  void operator()(const FilterBlock& node) { read(symbols, node.filter); }
  void operator()(const Scoped&) {}
  void operator()(const LoopControl&) {}

 private:
  Symbols fork() const { return Symbols(symbols.enclosing(), &symbols); }

  // An `elif` counts as an `if` of its own, without an `else`.
  static void see_elif(Symbols& symbols, const std::pair<ExpressionPtr, Block>& branch) {
    read(symbols, branch.first);
    const auto fork = [&] { return Symbols(symbols.enclosing(), &symbols); };
    std::array<Symbols, 3> parts = {fork(), fork(), fork()};
    ScopeReader{parts[0]}.see(branch.second);
    symbols.merge(parts);
  }
};

// Second pass: the scopes inside one whose symbols are known.
struct ScopeOpener {
  const Symbols& symbols;

  void see(Block& block) {
    for (Statement& statement : block) std::visit(*this, statement.node);
  }

  void operator()(Output&) {}
  void operator()(For& node) {
    Symbols body(&symbols, nullptr);
    body.declare("loop");
    declare(body, node.target);
    node.hidden = finish(body, *node.body);
    if (!node.otherwise) return;
    Symbols otherwise(&symbols, nullptr);
    node.otherwise_hidden = finish(otherwise, *node.otherwise);
  }
  void operator()(If& node) {
    for (auto& [condition, body] : node.branches) see(body);
    if (node.otherwise) see(*node.otherwise);
  }
  void operator()(Assign&) {}
  void operator()(AssignBlock& node) { node.hidden = open(*node.body); }
  void operator()(With& node) {
    Symbols inner(&symbols, nullptr);
    for (const auto& [target, value] : node.assignments) declare(inner, target);
    node.hidden = finish(inner, *node.body);
  }
  void operator()(Macro& node) { open_function(node.definition, *node.body); }
  void operator()(CallBlock& node) { open_function(node.caller, *node.body); }
  void operator()(FilterBlock& node) { node.hidden = open(*node.body); }
  void operator()(Scoped& node) {
    Symbols inner(node.sees_enclosing ? &symbols : nullptr, nullptr);
    node.hidden = finish(inner, *node.body);
  }
  void operator()(LoopControl&) {}

 private:
  static std::vector<std::string> finish(Symbols& inner, Block& block) {
    ScopeReader{inner}.see(block);
    ScopeOpener{inner}.see(block);
    return inner.hidden();
  }
  std::vector<std::string> open(Block& block) const {
    Symbols inner(&symbols, nullptr);
    return finish(inner, block);
  }
  void open_function(MacroDefinition& definition, Block& block) const {
    Symbols inner(&symbols, nullptr);
    for (const Parameter& parameter : definition.parameters) inner.declare(parameter.name);
    for (const Parameter& parameter : definition.parameters) read(inner, parameter.fallback);
    if (definition.uses_caller) inner.declare("caller");
    if (definition.uses_kwargs) inner.declare("kwargs");
    if (definition.uses_varargs) inner.declare("varargs");
    definition.hidden = finish(inner, block);
  }
};

}  // namespace

void analyze_scopes(Template& tree) {
  Symbols root(nullptr, nullptr);
  ScopeReader{root}.see(tree.body);
  ScopeOpener{root}.see(tree.body);
  tree.hidden = root.hidden();
}

}  // namespace assay::tokenizer_internal::jinja
