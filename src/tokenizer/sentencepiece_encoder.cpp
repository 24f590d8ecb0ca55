// SentencePiece BPE: merges run over the whole normalised text, from its characters. With scores (GGUF) any
// pair whose concatenation is a token may merge, the highest score first; with merges (tokenizer.json) as
// listed.
#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "tokenizer/bpe_merge.h"
#include "tokenizer/merge_ranks.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/segment_encoder.h"
#include "tokenizer/sentencepiece_normalizer.h"
#include "tokenizer/utf8.h"
#include "tokenizer/word_cache.h"

namespace assay::tokenizer_internal {
namespace {

// A rank that falls as the score rises: the bits of a float, made monotonic and inverted.
uint32_t rank_of_score(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 equals 0
  const uint32_t ascending = bits ^ (bits >> 31 != 0 ? 0xFFFFFFFF : 0x80000000);
  return ~ascending;
}

// Merges never join two words where no token holds the end of one followed by a space mark; cutting there
// lets a long text fall into short ones. This has, by byte, whether some token holds a mark after it. A lone
// mark must be a token, lest unknown characters of two words be joined.
std::array<bool, 256> bytes_before_marks(const Vocabulary& vocabulary) {
  std::array<bool, 256> joined{};
  if (!vocabulary.find(kSpaceMark)) joined.fill(true);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.is_text(id)) continue;
    std::string_view token = vocabulary.spec().tokens[id];
    while (token.starts_with(kSpaceMark)) token.remove_prefix(kSpaceMark.size());
    for (size_t mark = token.find(kSpaceMark); mark != std::string_view::npos;
         mark = token.find(kSpaceMark, mark + 1)) {
      joined[static_cast<uint8_t>(token[mark - 1])] = true;
    }
  }
  return joined;
}

size_t longest_text_token(const Vocabulary& vocabulary) {
  size_t longest = 0;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.is_text(id)) longest = std::max(longest, vocabulary.spec().tokens[id].size());
  }
  return longest;
}

class SentencePieceEncoder : public SegmentEncoder {
 public:
  SentencePieceEncoder(const Vocabulary& vocabulary, SentencePieceNormalizer normalizer,
                       PreTokenizer pre_tokenizer, std::optional<MergeRanks> ranks, bool whole_line_ends)
      : vocabulary_(vocabulary),
        normalizer_(std::move(normalizer)),
        pre_tokenizer_(std::move(pre_tokenizer)),
        ranks_(std::move(ranks)),
        whole_line_ends_(whole_line_ends),
        joined_(bytes_before_marks(vocabulary)),
        longest_token_(longest_text_token(vocabulary)) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const std::string normalized = normalizer_.normalize(text, true);
    std::vector<size_t> ends;
    pre_tokenizer_.split(normalized, ends);
    const std::vector<size_t> words = cut_words(normalized, ends);
    WordCache cache(words.size(), ids);
    size_t begin = 0;
    for (const size_t end : words) {
      const std::string_view piece = std::string_view(normalized).substr(begin, end - begin);
      cache.append(piece, [&] { encode_piece(piece, ids); });
      begin = end;
    }
  }

 private:
  // Also cuts before each space mark that follows the end of a word.
  std::vector<size_t> cut_words(std::string_view text, const std::vector<size_t>& ends) const {
    std::vector<size_t> finer;
    size_t after_mark = 0;  // where the last mark ended
    auto end = ends.begin();
    for (size_t mark = text.find(kSpaceMark); mark != std::string_view::npos;
         mark = text.find(kSpaceMark, mark + 1)) {
      for (; end != ends.end() && *end < mark; ++end) finer.push_back(*end);
      const bool word_ended = mark != after_mark && !joined_[static_cast<uint8_t>(text[mark - 1])];
      if (word_ended && (end == ends.end() || *end != mark)) finer.push_back(mark);
      after_mark = mark + kSpaceMark.size();
    }
    finer.insert(finer.end(), end, ends.end());
    return finer;
  }

  void encode_piece(std::string_view piece, std::vector<int32_t>& ids) const {
    if (whole_line_ends_ && piece.find_first_not_of('\n') == std::string_view::npos) {
      if (const auto id = find_text(piece)) return ids.push_back(*id);
    }
    std::vector<Symbol> symbols;
    if (ranks_) {
      spell_with_bytes(piece, symbols);
      merge_symbols(symbols, [this](const Symbol& left, const Symbol& right) {
        return left.id < 0 || right.id < 0 ? Merge{} : ranks_->find(left.id, right.id);
      });
    } else {
      spell(piece, symbols);
      merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) {
        return merge_by_score(piece.substr(left.begin, right.end - left.begin));
      });
    }
    emit(piece, symbols, ids);
  }

  std::optional<int32_t> find_text(std::string_view spelling) const {
    const auto id = vocabulary_.find(spelling);
    if (!id || !vocabulary_.is_text(*id)) return std::nullopt;
    return id;
  }

  void spell(std::string_view piece, std::vector<Symbol>& symbols) const {
    for (uint32_t at = 0; at < piece.size();) {
      const Utf8Char character = decode_utf8(piece, at);
      const uint32_t end = at + (character.status == Utf8Status::kValid ? character.length : 1);
      symbols.push_back({find_text(piece.substr(at, end - at)).value_or(-1), at, end});
      at = end;
    }
  }

  // Merges by rank know ids only, so characters without a token become byte tokens before merging.
  void spell_with_bytes(std::string_view piece, std::vector<Symbol>& symbols) const {
    std::vector<Symbol> characters;
    spell(piece, characters);
    for (const Symbol& symbol : characters) {
      if (symbol.id >= 0 || !has_byte_tokens(piece, symbol)) {
        symbols.push_back(symbol);
        continue;
      }
      for (uint32_t at = symbol.begin; at < symbol.end; ++at)
        symbols.push_back({byte_token(piece[at]), at, at + 1});
    }
  }

  Merge merge_by_score(std::string_view merged) const {
    if (merged.size() > longest_token_) return {};
    const auto id = find_text(merged);
    if (!id) return {};
    return {rank_of_score(vocabulary_.spec().scores[*id]), *id};
  }

  int32_t byte_token(char byte) const { return vocabulary_.byte_tokens()[static_cast<uint8_t>(byte)]; }

  bool has_byte_tokens(std::string_view piece, const Symbol& symbol) const {
    if (!vocabulary_.spec().byte_fallback) return false;
    const std::string_view bytes = piece.substr(symbol.begin, symbol.end - symbol.begin);
    return std::ranges::all_of(bytes, [this](char byte) { return byte_token(byte) >= 0; });
  }

  // Neighbouring unknown characters become one unknown token.
  void emit(std::string_view piece, const std::vector<Symbol>& symbols, std::vector<int32_t>& ids) const {
    bool after_unknown = false;
    for (const Symbol& symbol : symbols) {
      const bool unknown = symbol.id < 0 && !has_byte_tokens(piece, symbol);
      if (symbol.id >= 0) {
        ids.push_back(symbol.id);
      } else if (!unknown) {
        for (uint32_t at = symbol.begin; at < symbol.end; ++at) ids.push_back(byte_token(piece[at]));
      } else if (!after_unknown && vocabulary_.spec().unknown) {
        ids.push_back(*vocabulary_.spec().unknown);
      }
      after_unknown = unknown;
    }
  }

  const Vocabulary& vocabulary_;
  SentencePieceNormalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::optional<MergeRanks> ranks_;
  bool whole_line_ends_;          // a run of line ends that is a token is that token
  std::array<bool, 256> joined_;  // by the byte before a space mark: merges may reach across
  size_t longest_token_;
};

}  // namespace

Result<std::unique_ptr<SegmentEncoder>> make_sentencepiece_encoder(const Vocabulary& vocabulary) {
  const VocabSpec& spec = vocabulary.spec();
  ASSIGN_OR_RETURN(SentencePieceNormalizer normalizer, SentencePieceNormalizer::create(spec));
  std::vector<std::string> patterns = spec.split_patterns;
  bool whole_line_ends = false;
  std::optional<MergeRanks> ranks;
  if (!spec.merges.empty()) {
    ASSIGN_OR_RETURN(ranks, MergeRanks::create(vocabulary));
    if (!spec.pre_tokenizer.empty() && spec.pre_tokenizer != "default") {
      ASSIGN_OR_RETURN(const PreTokenizerRules* rules, find_pre_tokenizer_rules(spec.pre_tokenizer));
      patterns = rules->patterns;
      whole_line_ends = rules->raw_utf8;
    }
  }
  ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer, PreTokenizer::create(patterns));
  return std::make_unique<SentencePieceEncoder>(vocabulary, std::move(normalizer), std::move(pre_tokenizer),
                                                std::move(ranks), whole_line_ends);
}

}  // namespace assay::tokenizer_internal
