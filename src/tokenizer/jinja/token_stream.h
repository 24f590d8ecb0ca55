// The tokens of a template, read from front to back by the parsers. Internal to the template engine.
#pragma once

#include <fmt/core.h>
#include <string_view>
#include <utility>

#include <vector>

#include "tokenizer/jinja/lexer.h"

namespace assay::tokenizer_internal::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& look() const { return tokens_[position_ + 1 < tokens_.size() ? position_ + 1 : position_]; }
  int line() const { return current().line; }

  // The current token; moves past it, never past the end.
  Token next() {
    Token token = current();
    if (position_ + 1 < tokens_.size()) ++position_;
    return token;
  }

  bool at_operator(std::string_view symbol) const { return current().is_operator(symbol); }
  bool at_name(std::string_view name) const { return current().is_name(name); }
  bool skip_operator(std::string_view symbol) { return at_operator(symbol) && (next(), true); }
  bool skip_name(std::string_view name) { return at_name(name) && (next(), true); }

  void expect_operator(std::string_view symbol) {
    if (!skip_operator(symbol)) fail_syntax(line(), "expected '{}', found {}", symbol, current().describe());
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail_syntax(line(), "expected '{}', found {}", name, current().describe());
  }
  std::string expect_identifier() {
    if (current().kind != TokenKind::kName)
      fail_syntax(line(), "expected a name, found {}", current().describe());
    return next().text;
  }
  void expect(TokenKind kind, std::string_view spelled) {
    if (current().kind != kind) fail_syntax(line(), "expected '{}', found {}", spelled, current().describe());
    next();
  }

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
};

// Bounds the recursion of the parsers.
class NestingGuard {
 public:
  NestingGuard(int& depth, int line) : depth_(depth) {
    if (++depth_ > kMaxSyntaxDepth) {
      --depth_;
      throw Failure(ErrorCode::kResourceExhausted,
                    fmt::format("nested deeper than {} levels", kMaxSyntaxDepth), line);
    }
  }
  ~NestingGuard() { --depth_; }
  NestingGuard(const NestingGuard&) = delete;
  NestingGuard& operator=(const NestingGuard&) = delete;

 private:
  int& depth_;
};

}  // namespace assay::tokenizer_internal::jinja
