#include "tokenizer/sentencepiece_normalizer.h"

#include <utility>

#include "tokenizer/utf8.h"

namespace assay::tokenizer_internal {

Result<SentencePieceNormalizer> SentencePieceNormalizer::create(const VocabSpec& spec) {
  SentencePieceNormalizer result;
  ASSIGN_OR_RETURN(result.charsmap_, Charsmap::create(spec.precompiled_charsmap));
  result.add_prefix_ = spec.add_space_prefix;
  result.remove_extra_ = spec.remove_extra_whitespaces;
  return result;
}

Charsmap::Replacement SentencePieceNormalizer::next(std::string_view text, size_t at,
                                                    bool keep_invalid) const {
  if (const Charsmap::Replacement mapped = charsmap_.longest(text, at); mapped.consumed > 0) return mapped;
  const Utf8Char character = decode_utf8(text, at);
  if (character.status == Utf8Status::kValid) return {text.substr(at, character.length), character.length};
  return {keep_invalid ? text.substr(at, 1) : kReplacementText, 1};
}

std::string SentencePieceNormalizer::normalize(std::string_view text, bool keep_invalid) const {
  std::string out;
  out.reserve(text.size() + text.size() / 4 + kSpaceMark.size());
  // With remove_extra_, a space counts only once a character follows it: none at either end, no runs.
  bool started = !remove_extra_;
  if (started && add_prefix_) out += kSpaceMark;
  size_t pending_spaces = 0;
  for (size_t at = 0; at < text.size();) {
    const Charsmap::Replacement part = next(text, at, keep_invalid);
    at += part.consumed;
    for (const char c : part.text) {
      if (c == ' ') {
        if (remove_extra_)
          pending_spaces = started ? 1 : 0;
        else
          out += kSpaceMark;
        continue;
      }
      if (!started && add_prefix_) out += kSpaceMark;
      started = true;
      if (pending_spaces > 0) out += kSpaceMark;
      pending_spaces = 0;
      out.push_back(c);
    }
  }
  // SentencePiece trims after replacing spaces, so marks that the text itself holds at its end go too.
  while (remove_extra_ && out.ends_with(kSpaceMark)) out.resize(out.size() - kSpaceMark.size());
  return out;
}

}  // namespace assay::tokenizer_internal
