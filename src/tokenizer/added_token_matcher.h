// Finds the tokens that are matched before anything else: added tokens, control tokens, user-defined tokens.
// Leftmost first, then longest, as HF `tokenizers` does. One pass over the text.
// Thread safety: split() may run in parallel. Cost: O(text), times the length of the longest partial match.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/byte_trie.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab_spec.h"

namespace assay::tokenizer_internal {

// A stretch of text between matches (id < 0), or a matched token.
struct TextPiece {
  std::string_view text;
  int32_t id = -1;
};

class AddedTokenMatcher {
 public:
  // `tokens` have distinct, non-empty texts.
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  // Special tokens are recognised only with `parse_special`, and not where they touch one of the ranges
  // `literal` (ascending). Pieces of text are never empty.
  void split(std::string_view text, bool parse_special, std::span<const TextRange> literal,
             std::vector<TextPiece>& pieces) const;
  // Every place where a special token could be recognised, overlapping ones joined; ascending.
  std::vector<TextRange> find_special(std::string_view text) const;

 private:
  std::vector<AddedToken> tokens_;
  ByteTrie all_;       // values index tokens_
  ByteTrie ordinary_;  // those that are not special
};

}  // namespace assay::tokenizer_internal
