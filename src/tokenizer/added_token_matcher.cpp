#include "tokenizer/added_token_matcher.h"

#include <algorithm>
#include <utility>

#include "tokenizer/utf8.h"

namespace assay::tokenizer_internal {
namespace {

// Where white space at the end of text[begin, end) starts.
size_t trim_right(std::string_view text, size_t begin, size_t end) {
  while (end > begin) {
    size_t start = end - 1;
    while (start > begin && end - start < 4 && (static_cast<uint8_t>(text[start]) & 0xC0) == 0x80) --start;
    const Utf8Char last = decode_utf8(text.substr(0, end), start);
    if (last.status != Utf8Status::kValid || start + last.length != end || !is_white_space(last.code)) break;
    end = start;
  }
  return end;
}

// Where white space at `at` ends.
size_t trim_left(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Utf8Char next = decode_utf8(text, at);
    if (next.status != Utf8Status::kValid || !is_white_space(next.code)) break;
    at += next.length;
  }
  return at;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    all_.insert(tokens_[i].text, static_cast<int32_t>(i));
    if (!tokens_[i].special) ordinary_.insert(tokens_[i].text, static_cast<int32_t>(i));
  }
}

std::vector<TextRange> AddedTokenMatcher::find_special(std::string_view text) const {
  std::vector<TextRange> found;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!all_.may_start(static_cast<uint8_t>(text[at]))) continue;
    const ByteTrie::Match match = all_.longest(text, at);
    if (match.length == 0 || !tokens_[match.value].special) continue;
    if (found.empty() || found.back().end <= at) {
      found.push_back({at, at + match.length});
    } else {
      found.back().end = std::max(found.back().end, at + match.length);
    }
  }
  return found;
}

void AddedTokenMatcher::split(std::string_view text, bool parse_special, std::span<const TextRange> literal,
                              std::vector<TextPiece>& pieces) const {
  const ByteTrie& trie = parse_special ? all_ : ordinary_;
  size_t begin = 0;
  size_t at = 0;
  while (at < text.size()) {
    if (!trie.may_start(static_cast<uint8_t>(text[at]))) {
      ++at;
      continue;
    }
    ByteTrie::Match match = trie.longest(text, at);
    while (!literal.empty() && literal.front().end <= at) literal = literal.subspan(1);
    const bool touches = !literal.empty() && literal.front().begin < at + match.length;
    if (match.length > 0 && touches && tokens_[match.value].special) match = ordinary_.longest(text, at);
    if (match.length == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[match.value];
    const size_t end = token.strip_left ? trim_right(text, begin, at) : at;
    if (end > begin) pieces.push_back({text.substr(begin, end - begin), -1});
    pieces.push_back({text.substr(at, match.length), token.id});
    at += match.length;
    if (token.strip_right) at = trim_left(text, at);
    begin = at;
  }
  if (begin < text.size()) pieces.push_back({text.substr(begin), -1});
}

}  // namespace assay::tokenizer_internal
