// Parses expressions by recursive descent, with Jinja's precedence. Internal to the template engine.
#pragma once

#include <string_view>
#include <vector>

#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/token_stream.h"

namespace assay::tokenizer_internal::jinja {

// Which special variables the macros around the current position mention.
struct MacroMentions {
  bool caller = false, kwargs = false, varargs = false;
};

class ExpressionParser {
 public:
  // `depth` is the nesting shared with the statement parser.
  ExpressionParser(TokenStream& tokens, int& depth) : tokens_(tokens), depth_(depth) {}

  ExpressionPtr parse(bool with_conditional = true);
  // An expression, or several with commas between: a tuple.
  ExpressionPtr parse_tuple(bool with_conditional = true);
  // A name or a tuple of names; a namespace's attribute too where `set` allows it.
  Target parse_target(bool with_namespace);
  // `| name(args) | ...` applied to `input`, which is null for the text of a block.
  ExpressionPtr parse_filters(ExpressionPtr input, bool starts_with_name);

  std::vector<MacroMentions>& macros() { return macros_; }
  // Inside `if` and conditional expressions an unknown filter or test counts only when it is reached.
  int& conditional_depth() { return conditional_depth_; }

 private:
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name();
  ExpressionPtr parse_strings();
  ExpressionPtr parse_parentheses();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr node);
  ExpressionPtr parse_filter_chain(ExpressionPtr node);
  ExpressionPtr parse_subscript(ExpressionPtr object);
  ExpressionPtr parse_brackets(ExpressionPtr object, int line);
  ExpressionPtr parse_slice(ExpressionPtr object, ExpressionPtr start, int line);
  ExpressionPtr parse_call(ExpressionPtr callee);
  ExpressionPtr parse_test(ExpressionPtr input);
  std::string parse_dotted_name();
  CallArguments parse_arguments();
  void parse_argument(CallArguments& arguments, int line);
  bool at_tuple_end() const;
  Target parse_target_item();
  void mention(std::string_view name);

  TokenStream& tokens_;
  int& depth_;
  int conditional_depth_ = 0;
  std::vector<MacroMentions> macros_;
};

}  // namespace assay::tokenizer_internal::jinja
