// SentencePiece's precompiled normaliser: a map from character sequences to replacements (NFKC and the like),
// stored as a little-endian length, a darts-clone double-array trie of that many bytes, and the replacements,
// each ended by a zero byte. Source: SentencePiece's normalizer and the darts-clone format. Thread safety:
// const methods may run in parallel. Failure: create() only; a damaged trie never reads outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace assay::tokenizer_internal {

class Charsmap {
 public:
  // An empty blob maps nothing. A blob whose lengths disagree is kCorrupt.
  static Result<Charsmap> create(std::span<const uint8_t> blob);

  struct Replacement {
    std::string_view text;
    size_t consumed = 0;  // bytes of the input; 0 when nothing matches
  };
  // For the longest mapped sequence that starts at text[at].
  Replacement longest(std::string_view text, size_t at) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace assay::tokenizer_internal
