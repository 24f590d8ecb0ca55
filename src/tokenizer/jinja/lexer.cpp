#include "tokenizer/jinja/lexer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tokenizer/jinja/literal.h"
#include "tokenizer/jinja/unicode.h"

namespace assay::tokenizer_internal::jinja {
namespace {

constexpr size_t kNone = std::string_view::npos;

// \r\n and \r count as \n, and one line end at the very end of the template is dropped.
std::string normalize_lines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

size_t skip_space(std::string_view text, size_t position) {
  return text.size() - strip_left(text.substr(position)).size();
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_lines(source)), rest_(source_) {}

  std::vector<Token> run() {
    while (position_ < rest_.size()) read_data();
    push(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  // A tag that opens at `begin`: its kind, and where its content starts.
  struct Opening {
    char kind = 0;  // '%', '{', '#', or 'r' for a raw block
    char sign = 0;  // '-', '+' or none
    size_t content = 0;
  };

  void push(TokenKind kind, std::string text = {}) {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.text = std::move(text);
    tokens_.push_back(std::move(token));
  }

  bool starts(size_t position, std::string_view text) const {
    return rest_.substr(position).starts_with(text);
  }

  void advance_to(size_t position) {
    line_ += static_cast<int>(std::count(rest_.begin() + static_cast<std::ptrdiff_t>(position_),
                                         rest_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
    if (position > position_) line_starting_ = rest_[position - 1] == '\n';
    position_ = position;
  }

  // After a closing delimiter: `-` swallows all white space, otherwise (blocks only) one line end.
  size_t skip_after(size_t position, char sign, bool trims_line_end) const {
    if (sign == '-') return skip_space(rest_, position);
    if (sign != '+' && trims_line_end && starts(position, "\n")) return position + 1;
    return position;
  }

  size_t find_opening(size_t from) const {
    for (size_t i = rest_.find('{', from); i != kNone; i = rest_.find('{', i + 1)) {
      if (i + 1 < rest_.size() && std::string_view("%{#").find(rest_[i + 1]) != kNone) return i;
    }
    return kNone;
  }

  char read_sign(size_t position) const {
    const bool signed_tag = position < rest_.size() && (rest_[position] == '-' || rest_[position] == '+');
    return signed_tag ? rest_[position] : '\0';
  }

  // `{% raw %}` has no `+%}` and trims no line end.
  std::optional<size_t> match_raw(size_t content) const {
    size_t i = skip_space(rest_, content);
    if (!starts(i, "raw")) return std::nullopt;
    i = skip_space(rest_, i + 3);
    if (starts(i, "-%}")) return skip_space(rest_, i + 3);
    if (starts(i, "%}")) return i + 2;
    return std::nullopt;
  }

  Opening classify(size_t begin) const {
    Opening opening{rest_[begin + 1], read_sign(begin + 2), begin + 2};
    if (opening.sign) ++opening.content;
    if (opening.kind == '%') {
      if (auto content = match_raw(opening.content)) return {'r', opening.sign, *content};
    }
    return opening;
  }

  // Text before a tag: `-` strips all white space at its end; a block or comment alone on its line loses its
  // indent.
  std::string_view strip_before(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return strip_right(text);
    if (sign == '+' || is_variable) return text;
    const size_t line_begin = text.rfind('\n') + 1;  // npos + 1 is 0
    if (line_begin == 0 && !line_starting_) return text;
    return strip_left(text.substr(line_begin)).empty() ? text.substr(0, line_begin) : text;
  }

  void push_data(std::string_view text) {
    if (!text.empty()) push(TokenKind::kData, std::string(text));
  }

  void read_data() {
    const size_t begin = find_opening(position_);
    if (begin == kNone) {
      push_data(rest_.substr(position_));
      return advance_to(rest_.size());
    }
    const Opening opening = classify(begin);
    push_data(strip_before(rest_.substr(position_, begin - position_), opening.sign, opening.kind == '{'));
    advance_to(begin);
    switch (opening.kind) {
      case '#':
        return read_comment(opening.content);
      case 'r':
        return read_raw(opening.content);
      case '%':
        push(TokenKind::kBlockBegin);
        advance_to(opening.content);
        return read_code(TokenKind::kBlockEnd);
      default:
        push(TokenKind::kVariableBegin);
        advance_to(opening.content);
        return read_code(TokenKind::kVariableEnd);
    }
  }

  void read_comment(size_t content) {
    const size_t end = rest_.find("#}", content);
    if (end == kNone) fail_syntax(line_, "missing end of comment tag");
    const char sign = end > content ? read_sign(end - 1) : '\0';
    advance_to(skip_after(end + 2, sign, true));
  }

  void read_raw(size_t content) {
    advance_to(content);
    for (size_t begin = rest_.find("{%", content); begin != kNone; begin = rest_.find("{%", begin + 1)) {
      const char sign = read_sign(begin + 2);
      size_t i = skip_space(rest_, begin + 2 + (sign ? 1 : 0));
      if (!starts(i, "endraw")) continue;
      i = skip_space(rest_, i + 6);
      const char end_sign = read_sign(i);
      if (end_sign) ++i;
      if (!starts(i, "%}")) continue;
      push_data(strip_before(rest_.substr(content, begin - content), sign, false));
      return advance_to(skip_after(i + 2, end_sign, true));
    }
    fail_syntax(line_, "missing end of raw directive");
  }

  // The inside of {% %} or {{ }}. A closing delimiter counts only when all brackets are closed.
  void read_code(TokenKind end) {
    const std::string_view closing = end == TokenKind::kBlockEnd ? "%}" : "}}";
    std::string brackets;
    while (position_ < rest_.size()) {
      if (brackets.empty() && read_closing(end, closing)) return;
      const size_t after_space = skip_space(rest_, position_);
      if (after_space != position_) {
        advance_to(after_space);
      } else {
        read_token(brackets);
      }
    }
    push(TokenKind::kEnd);  // the parser tells what is missing
  }

  bool read_closing(TokenKind end, std::string_view closing) {
    const char sign = read_sign(position_);
    const bool sign_counts = sign == '-' || (sign == '+' && end == TokenKind::kBlockEnd);
    const size_t begin = position_ + (sign_counts ? 1 : 0);
    if (!starts(begin, closing)) return false;
    push(end);
    advance_to(skip_after(begin + 2, sign_counts ? sign : '\0', end == TokenKind::kBlockEnd));
    return true;
  }

  void read_token(std::string& brackets) {
    const char c = rest_[position_];
    if (c >= '0' && c <= '9') return read_number();
    if (c == '"' || c == '\'') return read_string();
    size_t end = position_;
    if (is_word(decode_character(rest_, end))) return read_name();
    read_operator(brackets);
  }

  void read_number() {
    const bool after_dot = position_ > 0 && rest_[position_ - 1] == '.';
    const NumberLiteral literal = read_number_literal(rest_.substr(position_), after_dot, line_);
    push(literal.is_float ? TokenKind::kFloat : TokenKind::kInteger,
         std::string(rest_.substr(position_, literal.size)));
    tokens_.back().integer = literal.integer;
    tokens_.back().real = literal.real;
    advance_to(position_ + literal.size);
  }

  void read_string() {
    const char quote = rest_[position_];
    size_t end = position_ + 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) fail_syntax(line_, "a string that starts with {} has no end", quote);
    push(TokenKind::kString, unescape_string(rest_.substr(position_ + 1, end - position_ - 1), line_));
    advance_to(end + 1);
  }

  void read_name() {
    size_t end = position_;
    for (size_t next = end; next < rest_.size(); end = next) {
      if (!is_word(decode_character(rest_, next))) break;
    }
    push(TokenKind::kName, std::string(rest_.substr(position_, end - position_)));
    advance_to(end);
  }

  void read_operator(std::string& brackets) {
    static constexpr std::array<std::string_view, 26> kSymbols = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (std::string_view symbol : kSymbols) {
      if (!starts(position_, symbol)) continue;
      balance(symbol[0], brackets);
      push(TokenKind::kOperator, std::string(symbol));
      return advance_to(position_ + symbol.size());
    }
    size_t end = position_;
    decode_character(rest_, end);
    fail_syntax(line_, "unexpected character '{}'", rest_.substr(position_, end - position_));
  }

  void balance(char c, std::string& brackets) const {
    if (c == '(') brackets += ')';
    if (c == '[') brackets += ']';
    if (c == '{') brackets += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (brackets.empty()) fail_syntax(line_, "unexpected '{}'", c);
    if (brackets.back() != c) fail_syntax(line_, "unexpected '{}', expected '{}'", c, brackets.back());
    brackets.pop_back();
  }

  const std::string source_;
  const std::string_view rest_;
  size_t position_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string Token::describe() const {
  switch (kind) {
    case TokenKind::kData:
      return "template data";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kString:
      return fmt::format("string '{}'", text.substr(0, 40));
    case TokenKind::kName:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
    case TokenKind::kOperator:
      return fmt::format("'{}'", text.substr(0, 40));
    case TokenKind::kEnd:
    case TokenKind::kCount:
      break;
  }
  return "the end of the template";
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace assay::tokenizer_internal::jinja
