#include "tokenizer/jinja/parser.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "tokenizer/jinja/expression_parser.h"
#include "tokenizer/jinja/scope_analysis.h"

namespace assay::tokenizer_internal::jinja {
namespace {

using EndNames = std::initializer_list<std::string_view>;

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)), expressions_(tokens_, depth_) {}

  Template run() { return {parse_block({}), {}}; }

 private:
  // Statements up to one of `ends`, which stays the current token. With no ends, up to the end of the
  // template.
  Block parse_block(EndNames ends) {
    const NestingGuard guard(depth_, tokens_.line());
    Block block;
    while (tokens_.current().kind != TokenKind::kEnd) {
      const int line = tokens_.line();
      if (tokens_.current().kind == TokenKind::kData) {
        block.push_back({Output{tokens_.next().text, nullptr}, line});
      } else if (tokens_.current().kind == TokenKind::kVariableBegin) {
        tokens_.next();
        block.push_back({Output{{}, expressions_.parse_tuple()}, line});
        tokens_.expect(TokenKind::kVariableEnd, "}}");
      } else {
        tokens_.expect(TokenKind::kBlockBegin, "{%");
        if (std::any_of(ends.begin(), ends.end(),
                        [&](std::string_view end) { return tokens_.at_name(end); })) {
          return block;
        }
        parse_statement(block, ends);
        tokens_.expect(TokenKind::kBlockEnd, "%}");
      }
    }
    if (ends.size() > 0) {
      fail_syntax(tokens_.line(), "the template ends where '{}' is expected", *std::prev(ends.end()));
    }
    return block;
  }

  // The rest of an opening tag, then its body.
  Block parse_body(EndNames ends) {
    tokens_.skip_operator(":");
    tokens_.expect(TokenKind::kBlockEnd, "%}");
    return parse_block(ends);
  }

  std::unique_ptr<Block> parse_body_until(std::string_view end) {
    auto body = std::make_unique<Block>(parse_body({end}));
    tokens_.next();
    return body;
  }

  void parse_statement(Block& block, EndNames ends) {
    const int line = tokens_.line();
    if (tokens_.current().kind != TokenKind::kName) {
      fail_syntax(line, "expected the name of a tag, found {}", tokens_.current().describe());
    }
    const std::string name = tokens_.next().text;
    using Parse = Statement (Parser::*)();
    static constexpr std::array<std::pair<std::string_view, Parse>, 11> kTags = {
        {{"for", &Parser::parse_for},
         {"if", &Parser::parse_if},
         {"set", &Parser::parse_set},
         {"macro", &Parser::parse_macro},
         {"call", &Parser::parse_call},
         {"filter", &Parser::parse_filter},
         {"with", &Parser::parse_with},
         {"generation", &Parser::parse_generation},
         {"block", &Parser::parse_named_block},
         {"break", &Parser::parse_break},
         {"continue", &Parser::parse_continue}}};
    for (const auto& [tag, parse] : kTags) {
      if (tag != name) continue;
      block.push_back((this->*parse)());
      block.back().line = line;
      return;
    }
    if (name == "print") return parse_print(block);
    fail_unknown_tag(name, line, ends);
  }

  [[noreturn]] void fail_unknown_tag(const std::string& name, int line, EndNames ends) {
    for (std::string_view known :
         {"include", "extends", "import", "from", "autoescape", "do", "debug", "trans"}) {
      if (name == known) {
        throw Failure(ErrorCode::kUnsupported,
                      fmt::format("the tag '{}' is not supported in chat templates", name), line);
      }
    }
    if (ends.size() == 0) fail_syntax(line, "unknown tag '{}'", name);
    fail_syntax(line, "unknown tag '{}', expected '{}'", name, *std::prev(ends.end()));
  }

  Statement parse_for() {
    For node{expressions_.parse_target(false), nullptr, nullptr, false, nullptr, nullptr, {}, {}};
    tokens_.expect_name("in");
    node.iterable = expressions_.parse_tuple(false);
    if (tokens_.skip_name("if")) node.condition = expressions_.parse();
    node.recursive = tokens_.skip_name("recursive");
    check_not_loop(node.target);
    ++loop_depth_;
    node.body = std::make_unique<Block>(parse_body({"else", "endfor"}));
    --loop_depth_;
    if (tokens_.next().text == "else") node.otherwise = parse_body_until("endfor");
    return {std::move(node)};
  }

  static void check_not_loop(const Target& target) {
    if (const auto* name = std::get_if<std::string>(&target.node); name && *name == "loop") {
      fail_syntax(target.line, "cannot assign to the special variable 'loop'");
    }
    if (const auto* tuple = std::get_if<TupleTarget>(&target.node)) {
      for (const Target& item : tuple->items) check_not_loop(item);
    }
  }

  Statement parse_if() {
    If node;
    ++expressions_.conditional_depth();
    std::string end = "elif";
    while (end == "elif") {
      ExpressionPtr condition = expressions_.parse_tuple(false);
      Block body = parse_body({"elif", "else", "endif"});
      node.branches.emplace_back(std::move(condition), std::move(body));
      end = tokens_.next().text;
    }
    if (end == "else") node.otherwise = parse_body_until("endif");
    --expressions_.conditional_depth();
    return {std::move(node)};
  }

  Statement parse_set() {
    Target target = expressions_.parse_target(true);
    if (tokens_.skip_operator("=")) return {Assign{std::move(target), expressions_.parse_tuple()}};
    ExpressionPtr filter = expressions_.parse_filters(nullptr, false);
    return {AssignBlock{std::move(target), std::move(filter), parse_body_until("endset"), {}}};
  }

  Statement parse_with() {
    With node;
    while (tokens_.current().kind != TokenKind::kBlockEnd) {
      if (!node.assignments.empty()) tokens_.expect_operator(",");
      Target target = expressions_.parse_target(false);
      tokens_.expect_operator("=");
      node.assignments.emplace_back(std::move(target), expressions_.parse());
    }
    node.body = parse_body_until("endwith");
    return {std::move(node)};
  }

  std::vector<Parameter> parse_signature() {
    std::vector<Parameter> parameters;
    tokens_.expect_operator("(");
    while (!tokens_.at_operator(")")) {
      if (!parameters.empty()) tokens_.expect_operator(",");
      const int line = tokens_.line();
      Parameter parameter{tokens_.expect_identifier(), nullptr};
      for (const Parameter& other : parameters) {
        if (other.name == parameter.name) fail_syntax(line, "parameter '{}' is repeated", parameter.name);
      }
      if (tokens_.skip_operator("=")) {
        parameter.fallback = expressions_.parse();
      } else if (!parameters.empty() && parameters.back().fallback) {
        fail_syntax(line, "parameter '{}' without a default follows one with a default", parameter.name);
      }
      parameters.push_back(std::move(parameter));
    }
    tokens_.expect_operator(")");
    return parameters;
  }

  // The body of a macro or call block is a function of its own: loops outside do not reach into it.
  std::unique_ptr<Block> parse_function_body(MacroDefinition& definition, std::string_view end) {
    expressions_.macros().emplace_back();
    const int outer_loop_depth = std::exchange(loop_depth_, 0);
    auto body = parse_body_until(end);
    loop_depth_ = outer_loop_depth;
    const MacroMentions mentions = expressions_.macros().back();
    expressions_.macros().pop_back();
    const auto is_parameter = [&](std::string_view name) {
      return std::any_of(definition.parameters.begin(), definition.parameters.end(),
                         [&](const Parameter& parameter) { return parameter.name == name; });
    };
    definition.uses_caller = mentions.caller && !is_parameter("caller");
    definition.uses_kwargs = mentions.kwargs && !is_parameter("kwargs");
    definition.uses_varargs = mentions.varargs && !is_parameter("varargs");
    definition.body = body.get();
    return body;
  }

  Statement parse_macro() {
    Macro node;
    node.definition.name = tokens_.expect_identifier();
    node.definition.parameters = parse_signature();
    node.body = parse_function_body(node.definition, "endmacro");
    return {std::move(node)};
  }

  Statement parse_call() {
    CallBlock node;
    const int line = tokens_.line();
    if (tokens_.at_operator("(")) node.caller.parameters = parse_signature();
    node.call = expressions_.parse();
    if (!std::holds_alternative<Call>(node.call->node))
      fail_syntax(line, "expected a call after the tag 'call'");
    node.body = parse_function_body(node.caller, "endcall");
    return {std::move(node)};
  }

  Statement parse_filter() {
    ExpressionPtr filter = expressions_.parse_filters(nullptr, true);
    return {FilterBlock{std::move(filter), parse_body_until("endfilter"), {}}};
  }

  Statement parse_generation() { return {Scoped{true, parse_body_until("endgeneration"), {}}}; }

  Statement parse_named_block() {
    const std::string name = tokens_.expect_identifier();
    const bool scoped = tokens_.skip_name("scoped");
    tokens_.skip_name("required");
    Scoped node{scoped, parse_body_until("endblock"), {}};
    tokens_.skip_name(name);
    return {std::move(node)};
  }

  Statement parse_break() { return parse_loop_control(true); }
  Statement parse_continue() { return parse_loop_control(false); }
  Statement parse_loop_control(bool is_break) {
    if (loop_depth_ == 0)
      fail_syntax(tokens_.line(), "'{}' outside of a loop", is_break ? "break" : "continue");
    return {LoopControl{is_break}};
  }

  void parse_print(Block& block) {
    for (bool first = true; tokens_.current().kind != TokenKind::kBlockEnd; first = false) {
      if (!first) tokens_.expect_operator(",");
      const int line = tokens_.line();
      block.push_back({Output{{}, expressions_.parse()}, line});
    }
  }

  TokenStream tokens_;
  int depth_ = 0;
  ExpressionParser expressions_;
  int loop_depth_ = 0;
};

}  // namespace

Template parse_template(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    fail_limit("the template has {} bytes, at most {} are allowed", source.size(), kMaxSourceBytes);
  }
  Template tree = Parser(source).run();
  analyze_scopes(tree);
  return tree;
}

}  // namespace assay::tokenizer_internal::jinja
