#include "tokenizer/jinja/expression_parser.h"

#include <algorithm>
#include <array>

#include "tokenizer/jinja/filters.h"

namespace assay::tokenizer_internal::jinja {
namespace {

// The deepest of an expression's parts.
struct DeepestPart {
  int depth = 0;

  void see(const ExpressionPtr& part) { depth = std::max(depth, part ? part->depth : 0); }
  void see(const std::vector<ExpressionPtr>& parts) {
    for (const auto& part : parts) see(part);
  }
  void see(const CallArguments& arguments) {
    see(arguments.positional);
    for (const auto& [name, value] : arguments.named) see(value);
    see(arguments.unpacked);
    see(arguments.unpacked_named);
  }
  template <class... Parts>
  void see(const Parts&... parts) {
    (see(parts), ...);
  }

  void operator()(const Constant&) {}
  void operator()(const Name&) {}
  void operator()(const SequenceLiteral& node) { see(node.items); }
  void operator()(const DictLiteral& node) {
    for (const auto& [key, value] : node.entries) see(key, value);
  }
  void operator()(const Attribute& node) { see(node.object); }
  void operator()(const Subscript& node) { see(node.object, node.key); }
  void operator()(const Slice& node) { see(node.object, node.start, node.stop, node.step); }
  void operator()(const Call& node) { see(node.callee, node.arguments); }
  void operator()(const Filter& node) { see(node.input, node.arguments); }
  void operator()(const Test& node) { see(node.input, node.arguments); }
  void operator()(const Unary& node) { see(node.operand); }
  void operator()(const Binary& node) { see(node.left, node.right); }
  void operator()(const Logical& node) { see(node.left, node.right); }
  void operator()(const Concatenation& node) { see(node.parts); }
  void operator()(const Compare& node) {
    see(node.first);
    for (const auto& [comparison, operand] : node.rest) see(operand);
  }
  void operator()(const Conditional& node) { see(node.condition, node.then, node.otherwise); }
};

template <class Node>
ExpressionPtr make(int line, Node node) {
  auto made = std::make_unique<Expression>(Expression{std::move(node), line, 1});
  DeepestPart deepest;
  std::visit(deepest, made->node);
  made->depth = deepest.depth + 1;
  if (made->depth > kMaxExpressionDepth) {
    throw Failure(ErrorCode::kResourceExhausted,
                  fmt::format("an expression has more than {} levels", kMaxExpressionDepth), line);
  }
  return made;
}

std::optional<Comparison> comparison_at(const TokenStream& tokens) {
  static constexpr std::array<std::pair<std::string_view, Comparison>, 6> kSymbols = {
      {{"==", Comparison::kEqual},
       {"!=", Comparison::kNotEqual},
       {"<=", Comparison::kLessEqual},
       {">=", Comparison::kGreaterEqual},
       {"<", Comparison::kLess},
       {">", Comparison::kGreater}}};
  for (const auto& [symbol, comparison] : kSymbols) {
    if (tokens.at_operator(symbol)) return comparison;
  }
  if (tokens.at_name("in")) return Comparison::kIn;
  if (tokens.at_name("not") && tokens.look().is_name("in")) return Comparison::kNotIn;
  return std::nullopt;
}

std::optional<BinaryOperator> product_at(const TokenStream& tokens) {
  if (tokens.at_operator("*")) return BinaryOperator::kMultiply;
  if (tokens.at_operator("/")) return BinaryOperator::kDivide;
  if (tokens.at_operator("//")) return BinaryOperator::kFloorDivide;
  if (tokens.at_operator("%")) return BinaryOperator::kModulo;
  return std::nullopt;
}

// A test's single argument may stand without parentheses: `x is divisibleby 3`.
bool at_bare_argument(const TokenStream& tokens) {
  switch (tokens.current().kind) {
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return true;
    case TokenKind::kName:
      return !tokens.at_name("else") && !tokens.at_name("or") && !tokens.at_name("and");
    default:
      return tokens.at_operator("[") || tokens.at_operator("{");
  }
}

}  // namespace

ExpressionPtr ExpressionParser::parse(bool with_conditional) {
  const NestingGuard guard(depth_, tokens_.line());
  int line = tokens_.line();
  ExpressionPtr value = parse_or();
  while (with_conditional && tokens_.skip_name("if")) {
    ++conditional_depth_;
    ExpressionPtr condition = parse_or();
    ExpressionPtr otherwise = tokens_.skip_name("else") ? parse() : nullptr;
    --conditional_depth_;
    value = make(line, Conditional{std::move(condition), std::move(value), std::move(otherwise)});
    line = tokens_.line();
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_or() {
  const int line = tokens_.line();
  ExpressionPtr left = parse_and();
  while (tokens_.skip_name("or")) left = make(line, Logical{false, std::move(left), parse_and()});
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  const int line = tokens_.line();
  ExpressionPtr left = parse_not();
  while (tokens_.skip_name("and")) left = make(line, Logical{true, std::move(left), parse_not()});
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  const int line = tokens_.line();
  if (!tokens_.skip_name("not")) return parse_compare();
  const NestingGuard guard(depth_, line);
  return make(line, Unary{UnaryOperator::kNot, parse_not()});
}

ExpressionPtr ExpressionParser::parse_compare() {
  const int line = tokens_.line();
  ExpressionPtr first = parse_sum();
  Compare compare;
  while (auto comparison = comparison_at(tokens_)) {
    tokens_.next();
    if (*comparison == Comparison::kNotIn) tokens_.next();
    compare.rest.emplace_back(*comparison, parse_sum());
  }
  if (compare.rest.empty()) return first;
  compare.first = std::move(first);
  return make(line, std::move(compare));
}

ExpressionPtr ExpressionParser::parse_sum() {
  const int line = tokens_.line();
  ExpressionPtr left = parse_concatenation();
  while (tokens_.at_operator("+") || tokens_.at_operator("-")) {
    const auto op = tokens_.next().text == "+" ? BinaryOperator::kAdd : BinaryOperator::kSubtract;
    left = make(line, Binary{op, std::move(left), parse_concatenation()});
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  const int line = tokens_.line();
  ExpressionPtr first = parse_product();
  if (!tokens_.at_operator("~")) return first;
  Concatenation node;
  node.parts.push_back(std::move(first));
  while (tokens_.skip_operator("~")) node.parts.push_back(parse_product());
  return make(line, std::move(node));
}

ExpressionPtr ExpressionParser::parse_product() {
  const int line = tokens_.line();
  ExpressionPtr left = parse_power();
  while (auto op = product_at(tokens_)) {
    tokens_.next();
    left = make(line, Binary{*op, std::move(left), parse_power()});
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_power() {
  const int line = tokens_.line();
  ExpressionPtr left = parse_unary(true);
  // Jinja's ** associates to the left as it parses, but to the right as Python runs the code it writes; what
  // counts is the parse, which it puts in parentheses.
  while (tokens_.skip_operator("**"))
    left = make(line, Binary{BinaryOperator::kPower, std::move(left), parse_unary(true)});
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filters) {
  const NestingGuard guard(depth_, tokens_.line());
  const int line = tokens_.line();
  ExpressionPtr node;
  if (tokens_.skip_operator("-")) {
    node = make(line, Unary{UnaryOperator::kNegate, parse_unary(false)});
  } else if (tokens_.skip_operator("+")) {
    node = make(line, Unary{UnaryOperator::kPlus, parse_unary(false)});
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filters ? parse_filter_chain(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::parse_primary() {
  const Token& token = tokens_.current();
  const int line = token.line;
  switch (token.kind) {
    case TokenKind::kName:
      return parse_name();
    case TokenKind::kString:
      return parse_strings();
    case TokenKind::kInteger:
      return make(line, Constant{tokens_.next().integer});
    case TokenKind::kFloat:
      return make(line, Constant{tokens_.next().real});
    default:
      break;
  }
  if (tokens_.skip_operator("(")) return parse_parentheses();
  if (tokens_.skip_operator("[")) return parse_list();
  if (tokens_.skip_operator("{")) return parse_dict();
  fail_syntax(line, "expected an expression, found {}", token.describe());
}

ExpressionPtr ExpressionParser::parse_name() {
  const Token token = tokens_.next();
  const std::string& name = token.text;
  if (name == "true" || name == "True") return make(token.line, Constant{true});
  if (name == "false" || name == "False") return make(token.line, Constant{false});
  if (name == "none" || name == "None") return make(token.line, Constant{None{}});
  mention(name);
  return make(token.line, Name{name});
}

void ExpressionParser::mention(std::string_view name) {
  for (MacroMentions& macro : macros_) {
    if (name == "caller") macro.caller = true;
    if (name == "kwargs") macro.kwargs = true;
    if (name == "varargs") macro.varargs = true;
  }
}

// Adjacent strings are one, as in Python.
ExpressionPtr ExpressionParser::parse_strings() {
  Token token = tokens_.next();
  while (tokens_.current().kind == TokenKind::kString) token.text += tokens_.next().text;
  return make(token.line, Constant{constant_text(std::move(token.text))});
}

ExpressionPtr ExpressionParser::parse_parentheses() {
  const int line = tokens_.line();
  if (tokens_.skip_operator(")")) return make(line, SequenceLiteral{SequenceKind::kTuple, {}});
  ExpressionPtr value = parse_tuple();
  tokens_.expect_operator(")");
  return value;
}

ExpressionPtr ExpressionParser::parse_list() {
  const int line = tokens_.line();
  SequenceLiteral list{SequenceKind::kList, {}};
  while (!tokens_.at_operator("]")) {
    if (!list.items.empty()) tokens_.expect_operator(",");
    if (tokens_.at_operator("]")) break;
    list.items.push_back(parse());
  }
  tokens_.expect_operator("]");
  return make(line, std::move(list));
}

ExpressionPtr ExpressionParser::parse_dict() {
  const int line = tokens_.line();
  DictLiteral dict;
  while (!tokens_.at_operator("}")) {
    if (!dict.entries.empty()) tokens_.expect_operator(",");
    if (tokens_.at_operator("}")) break;
    ExpressionPtr key = parse();
    tokens_.expect_operator(":");
    dict.entries.emplace_back(std::move(key), parse());
  }
  tokens_.expect_operator("}");
  return make(line, std::move(dict));
}

bool ExpressionParser::at_tuple_end() const {
  const TokenKind kind = tokens_.current().kind;
  return kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd || tokens_.at_operator(")");
}

ExpressionPtr ExpressionParser::parse_tuple(bool with_conditional) {
  const int line = tokens_.line();
  SequenceLiteral tuple{SequenceKind::kTuple, {}};
  bool is_tuple = false;
  while (true) {
    if (!tuple.items.empty()) tokens_.expect_operator(",");
    if (at_tuple_end()) break;
    tuple.items.push_back(parse(with_conditional));
    if (!tokens_.at_operator(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return make(line, std::move(tuple));
  if (tuple.items.empty())
    fail_syntax(line, "expected an expression, found {}", tokens_.current().describe());
  return std::move(tuple.items.front());
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr node) {
  while (true) {
    if (tokens_.at_operator(".") || tokens_.at_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (tokens_.at_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filter_chain(ExpressionPtr node) {
  while (true) {
    if (tokens_.at_operator("|")) {
      node = parse_filters(std::move(node), false);
    } else if (tokens_.at_name("is")) {
      node = parse_test(std::move(node));
    } else if (tokens_.at_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr object) {
  const int line = tokens_.line();
  if (tokens_.skip_operator("[")) return parse_brackets(std::move(object), line);
  tokens_.expect_operator(".");
  const Token name = tokens_.next();
  if (name.kind == TokenKind::kName) return make(line, Attribute{std::move(object), name.text});
  if (name.kind != TokenKind::kInteger) {
    fail_syntax(name.line, "expected a name or number after '.', found {}", name.describe());
  }
  return make(line, Subscript{std::move(object), make(name.line, Constant{name.integer})});
}

ExpressionPtr ExpressionParser::parse_brackets(ExpressionPtr object, int line) {
  if (tokens_.at_operator(":")) return parse_slice(std::move(object), nullptr, line);
  SequenceLiteral keys{SequenceKind::kTuple, {}};
  while (!tokens_.at_operator("]")) {
    if (!keys.items.empty()) tokens_.expect_operator(",");
    keys.items.push_back(parse());
    if (tokens_.at_operator(":")) {
      if (keys.items.size() > 1) fail_syntax(tokens_.line(), "a slice inside a tuple is not supported");
      return parse_slice(std::move(object), std::move(keys.items.front()), line);
    }
  }
  tokens_.expect_operator("]");
  ExpressionPtr key = keys.items.size() == 1 ? std::move(keys.items.front()) : make(line, std::move(keys));
  return make(line, Subscript{std::move(object), std::move(key)});
}

// From the first colon on.
ExpressionPtr ExpressionParser::parse_slice(ExpressionPtr object, ExpressionPtr start, int line) {
  Slice slice{std::move(object), std::move(start), nullptr, nullptr};
  tokens_.expect_operator(":");
  if (!tokens_.at_operator(":") && !tokens_.at_operator("]")) slice.stop = parse();
  if (tokens_.skip_operator(":") && !tokens_.at_operator("]")) slice.step = parse();
  tokens_.expect_operator("]");
  return make(line, std::move(slice));
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr callee) {
  const int line = tokens_.line();
  CallArguments arguments = parse_arguments();
  return make(line, Call{std::move(callee), std::move(arguments)});
}

CallArguments ExpressionParser::parse_arguments() {
  const int line = tokens_.line();
  CallArguments arguments;
  tokens_.expect_operator("(");
  bool first = true;
  while (!tokens_.at_operator(")")) {
    if (!first) tokens_.expect_operator(",");
    if (tokens_.at_operator(")")) break;
    first = false;
    parse_argument(arguments, line);
  }
  tokens_.expect_operator(")");
  return arguments;
}

void ExpressionParser::parse_argument(CallArguments& arguments, int line) {
  const bool unpacked_named = arguments.unpacked_named != nullptr;
  bool valid = !unpacked_named;
  if (tokens_.skip_operator("*")) {
    valid = valid && !arguments.unpacked;
    arguments.unpacked = parse();
  } else if (tokens_.skip_operator("**")) {
    arguments.unpacked_named = parse();
  } else if (tokens_.current().kind == TokenKind::kName && tokens_.look().is_operator("=")) {
    std::string name = tokens_.next().text;
    tokens_.next();
    for (const auto& [other, value] : arguments.named) {
      if (other == name) fail_syntax(line, "keyword argument '{}' is repeated", name);
    }
    arguments.named.emplace_back(std::move(name), parse());
  } else {
    valid = valid && !arguments.unpacked && arguments.named.empty();
    arguments.positional.push_back(parse());
  }
  if (!valid) fail_syntax(line, "invalid order of arguments in a call");
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = tokens_.expect_identifier();
  while (tokens_.skip_operator(".")) name += "." + tokens_.expect_identifier();
  return name;
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr input, bool starts_with_name) {
  while (starts_with_name || tokens_.skip_operator("|")) {
    starts_with_name = false;
    const int line = tokens_.line();
    std::string name = parse_dotted_name();
    if (conditional_depth_ == 0 && !find_filter(name)) {
      throw Failure(ErrorCode::kUnsupported, fmt::format("no filter named '{}'", name), line);
    }
    CallArguments arguments;
    if (tokens_.at_operator("(")) arguments = parse_arguments();
    input = make(line, Filter{std::move(input), std::move(name), std::move(arguments)});
  }
  return input;
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr input) {
  const int line = tokens_.line();
  tokens_.expect_name("is");
  const bool negated = tokens_.skip_name("not");
  std::string name = parse_dotted_name();
  if (conditional_depth_ == 0 && !find_test(name)) {
    throw Failure(ErrorCode::kUnsupported, fmt::format("no test named '{}'", name), line);
  }
  CallArguments arguments;
  if (tokens_.at_operator("(")) {
    arguments = parse_arguments();
  } else if (at_bare_argument(tokens_)) {
    if (tokens_.at_name("is")) fail_syntax(tokens_.line(), "tests cannot be chained with 'is'");
    arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  ExpressionPtr test = make(line, Test{std::move(input), std::move(name), std::move(arguments)});
  return negated ? make(line, Unary{UnaryOperator::kNot, std::move(test)}) : std::move(test);
}

Target ExpressionParser::parse_target_item() {
  const int line = tokens_.line();
  if (tokens_.skip_operator("(")) {
    Target target = parse_target(false);
    tokens_.expect_operator(")");
    return target;
  }
  std::string name = tokens_.expect_identifier();
  for (std::string_view reserved : {"true", "false", "none", "True", "False", "None"}) {
    if (name == reserved) fail_syntax(line, "cannot assign to '{}'", name);
  }
  return {std::move(name), line};
}

Target ExpressionParser::parse_target(bool with_namespace) {
  const NestingGuard guard(depth_, tokens_.line());
  const int line = tokens_.line();
  if (with_namespace && tokens_.look().is_operator(".")) {
    std::string name = tokens_.expect_identifier();
    tokens_.next();
    return {NamespaceTarget{std::move(name), tokens_.expect_identifier()}, line};
  }
  TupleTarget tuple;
  bool is_tuple = false;
  while (true) {
    if (at_tuple_end()) break;
    tuple.items.push_back(parse_target_item());
    if (!tokens_.skip_operator(",")) break;
    is_tuple = true;
  }
  if (tuple.items.empty())
    fail_syntax(line, "expected a name to assign to, found {}", tokens_.current().describe());
  if (!is_tuple) return std::move(tuple.items.front());
  return {std::move(tuple), line};
}

}  // namespace assay::tokenizer_internal::jinja
