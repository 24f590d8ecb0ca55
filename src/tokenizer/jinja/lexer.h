// Splits a template into tokens, white space control included (trim_blocks and lstrip_blocks on, as
// transformers sets them). Internal to the template engine. Failure: syntax errors with their line. Cost:
// linear in the source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

enum class TokenKind {
  kData,
  kBlockBegin,
  kBlockEnd,
  kVariableBegin,
  kVariableEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
  kCount
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;  // data, name, unescaped string or operator
  Integer integer = 0;
  double real = 0;

  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
  bool is_operator(std::string_view symbol) const { return kind == TokenKind::kOperator && text == symbol; }
  std::string describe() const;  // for error messages
};

// The tokens of a whole template; the last one is kEnd.
std::vector<Token> tokenize(std::string_view source);

}  // namespace assay::tokenizer_internal::jinja
