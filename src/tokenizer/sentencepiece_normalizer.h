// What SentencePiece does to a text before it is cut: the charsmap, superfluous spaces, the prefix, U+2581
// for the space. Source: SentencePiece's Normalizer. Thread safety: const methods may run in parallel. Cost:
// O(text), times the longest mapped sequence.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/vocab_spec.h"

namespace assay::tokenizer_internal {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

class SentencePieceNormalizer {
 public:
  static Result<SentencePieceNormalizer> create(const VocabSpec& spec);

  // Invalid UTF-8 passes through when `keep_invalid`, else each bad byte becomes U+FFFD.
  std::string normalize(std::string_view text, bool keep_invalid) const;

 private:
  Charsmap::Replacement next(std::string_view text, size_t at, bool keep_invalid) const;

  Charsmap charsmap_;
  bool add_prefix_ = false;
  bool remove_extra_ = false;
};

}  // namespace assay::tokenizer_internal
