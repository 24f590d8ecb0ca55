#include "grammar/pattern_tree.h"

#include <algorithm>
#include <optional>
#include <string>

namespace assay::grammar {
namespace {

using Kind = PatternNode::Kind;

constexpr int kMaxDepth = 64;
constexpr uint32_t kMaxCount = 10'000;

CodePointSet digits() {
  return {{'0', '9'}};
}
CodePointSet word_characters() {
  return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
}
// ECMA-262: WhiteSpace and LineTerminator.
CodePointSet white_space() {
  return {{9, 13},          {32, 32},         {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}
CodePointSet line_ends() {
  return {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : text_(to_code_points(pattern)) {}

  Result<std::vector<PatternBranch>> run() {
    std::vector<PatternBranch> branches;
    do {
      PatternBranch& branch = branches.emplace_back();
      branch.from_start = take('^');
      ASSIGN_OR_RETURN(branch.body, sequence(0));
      branch.to_end = take('$');
    } while (take('|'));
    if (!at_end() && peek() == ')') return bad("a ')' without a '('");
    if (!at_end())
      return unsupported("^ and $ elsewhere than at the ends of the pattern or of its alternatives");
    return branches;
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char32_t peek() const { return text_[at_]; }
  bool take(char32_t c) {
    if (at_end() || peek() != c) return false;
    ++at_;
    return true;
  }
  bool follows(std::u32string_view text) const {
    return std::u32string_view(text_).substr(at_).starts_with(text);
  }

  std::unexpected<Error> bad(std::string_view what) const {
    return fail(ErrorCode::kInvalidArgument, "pattern", "{} at character {}", what, at_);
  }
  std::unexpected<Error> unsupported(std::string_view what) const {
    return fail(ErrorCode::kUnsupported, "pattern", "{} (at character {})", what, at_);
  }

  Result<PatternNode> choice(int depth) {
    if (depth > kMaxDepth) return bad("groups nested too deeply");
    PatternNode node{.kind = Kind::kChoice};
    do {
      ASSIGN_OR_RETURN(PatternNode branch, sequence(depth));
      node.children.push_back(std::move(branch));
    } while (take('|'));
    return node;
  }

  Result<PatternNode> sequence(int depth) {
    PatternNode node;
    while (!at_end() && peek() != '|' && peek() != ')') {
      if (peek() == '^' || peek() == '$') {
        if (depth == 0) break;  // run() looks at it
        return unsupported("^ and $ inside a group");
      }
      ASSIGN_OR_RETURN(PatternNode item, atom(depth));
      ASSIGN_OR_RETURN(item, quantified(std::move(item)));
      node.children.push_back(std::move(item));
    }
    return node;
  }

  Result<PatternNode> quantified(PatternNode item) {
    uint32_t min = 1, max = 1;
    if (take('*')) {
      min = 0, max = kUnbounded;
    } else if (take('+')) {
      max = kUnbounded;
    } else if (take('?')) {
      min = 0;
    } else if (!at_end() && peek() == '{') {
      ++at_;
      ASSIGN_OR_RETURN(min, number());
      max = min;
      if (take(',')) {
        max = kUnbounded;
        if (!at_end() && peek() != '}') {
          ASSIGN_OR_RETURN(max, number());
        }
      }
      if (!take('}')) return bad("expected a '}'");
      if (max < min) return bad("a repetition whose bounds are out of order");
    } else {
      return item;
    }
    take('?');  // lazy
    if (!at_end() && (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{'))
      return bad("nothing to repeat");
    PatternNode node{.kind = Kind::kRepeat, .min = min, .max = max};
    node.children.push_back(std::move(item));
    return node;
  }

  Result<uint32_t> number() {
    if (at_end() || peek() < '0' || peek() > '9') return bad("expected a number");
    uint32_t value = 0;
    for (; !at_end() && peek() >= '0' && peek() <= '9'; ++at_) {
      value = value * 10 + (peek() - '0');
      if (value > kMaxCount) return unsupported("a repetition of more than 10000");
    }
    return value;
  }

  Result<PatternNode> atom(int depth) {
    switch (peek()) {
      case '*':
      case '+':
      case '?':
      case '{':
        return bad("nothing to repeat");
      case '(':
        return group(depth);
      case '[':
        return set_node(bracket());
      case '.':
        ++at_;
        return set_node(complement(line_ends()));
      case '\\':
        return set_node(escape(false));
      case ']':
      case '}':
        return bad("a closing bracket without an opening one");
      default:
        return set_node(class_item());
    }
  }

  static Result<PatternNode> set_node(Result<CodePointSet> set) {
    if (!set) return std::unexpected(set.error());
    return PatternNode{.kind = Kind::kSet, .set = normalised(std::move(*set))};
  }

  Result<PatternNode> group(int depth) {
    ++at_;
    if (follows(U"?=") || follows(U"?!") || follows(U"?<=") || follows(U"?<!"))
      return unsupported("look-around");
    if (follows(U"?:")) {
      at_ += 2;
    } else if (follows(U"?<")) {
      while (!at_end() && peek() != '>') ++at_;
      if (!take('>')) return bad("a group name without its end");
    } else if (follows(U"?")) {
      return unsupported("this kind of group");
    }
    ASSIGN_OR_RETURN(PatternNode node, choice(depth + 1));
    if (!take(')')) return bad("a group without its ')'");
    return node;
  }

  Result<CodePointSet> escape(bool in_class) {
    ++at_;
    if (at_end()) return bad("a \\ at the end");
    const char32_t c = text_[at_++];
    const auto single = [](uint32_t point) { return CodePointSet{{point, point}}; };
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return complement(digits());
      case 'w':
        return word_characters();
      case 'W':
        return complement(word_characters());
      case 's':
        return white_space();
      case 'S':
        return complement(white_space());
      case 'n':
        return single('\n');
      case 'r':
        return single('\r');
      case 't':
        return single('\t');
      case 'f':
        return single('\f');
      case 'v':
        return single('\v');
      case '0':
        return single(0);
      case 'x':
        return hex(2);
      case 'u':
        return take('{') ? braced_hex() : hex(4);
      case 'b':
        if (in_class) return single('\b');
        return unsupported("\\b");
      default:
        break;
    }
    if ((c >= '1' && c <= '9') || c == 'k') return unsupported("back-references");
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter) return unsupported(std::string("\\") + static_cast<char>(c));
    return single(c);
  }

  static std::optional<uint32_t> hex_value(char32_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return std::nullopt;
  }

  Result<CodePointSet> hex(int n_digits) {
    uint32_t value = 0;
    for (int i = 0; i < n_digits; ++i) {
      const auto digit = at_end() ? std::nullopt : hex_value(peek());
      if (!digit) return bad("expected a hexadecimal digit");
      value = value * 16 + *digit;
      ++at_;
    }
    if (value >= 0xD800 && value <= 0xDFFF) return unsupported("surrogates; write \\u{...}");
    return CodePointSet{{value, value}};
  }

  Result<CodePointSet> braced_hex() {
    uint32_t value = 0;
    for (; !at_end() && hex_value(peek()); ++at_) {
      value = value * 16 + *hex_value(peek());
      if (value > kLastCodePoint) return bad("not a code point");
    }
    if (!take('}')) return bad("expected a '}'");
    return CodePointSet{{value, value}};
  }

  // One character, or what an escape inside a class stands for.
  Result<CodePointSet> class_item() {
    if (peek() == '\\') return escape(true);
    const char32_t c = text_[at_++];
    return CodePointSet{{c, c}};
  }

  Result<CodePointSet> bracket() {
    ++at_;
    const bool negated = take('^');
    CodePointSet set;
    while (!at_end() && peek() != ']') {
      ASSIGN_OR_RETURN(CodePointSet item, class_item());
      const bool single = item.size() == 1 && item[0].low == item[0].high;
      if (single && follows(U"-") && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        ASSIGN_OR_RETURN(const CodePointSet last, class_item());
        if (last.size() != 1 || last[0].low != last[0].high) return bad("a range that ends in a class");
        if (last[0].low < item[0].low) return bad("a range whose ends are out of order");
        item[0].high = last[0].high;
      }
      set.insert(set.end(), item.begin(), item.end());
    }
    if (!take(']')) return bad("a class without its ']'");
    set = normalised(std::move(set));
    return negated ? complement(set) : set;
  }

  const std::u32string text_;
  size_t at_ = 0;
};

}  // namespace

Result<std::vector<PatternBranch>> parse_pattern(std::string_view pattern) {
  return Parser(pattern).run();
}

}  // namespace assay::grammar
