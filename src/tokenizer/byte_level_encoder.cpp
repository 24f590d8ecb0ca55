// Byte-level BPE (Radford et al. 2019): the text is cut by the pre-tokenizer, each piece starts as its bytes.
#include <array>
#include <string>
#include <utility>

#include "tokenizer/bpe_merge.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/merge_ranks.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/segment_encoder.h"
#include "tokenizer/word_cache.h"

namespace assay::tokenizer_internal {
namespace {

class ByteLevelEncoder : public SegmentEncoder {
 public:
  ByteLevelEncoder(const Vocabulary& vocabulary, PreTokenizer pre_tokenizer, MergeRanks ranks,
                   bool ignore_merges)
      : vocabulary_(vocabulary),
        pre_tokenizer_(std::move(pre_tokenizer)),
        ranks_(std::move(ranks)),
        ignore_merges_(ignore_merges) {
    for (int byte = 0; byte < 256; ++byte) {
      byte_ids_[byte] = vocabulary.find(spell_byte(static_cast<uint8_t>(byte))).value_or(-1);
    }
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    std::vector<size_t> ends;
    pre_tokenizer_.split(text, ends);
    std::vector<Symbol> symbols;
    WordCache cache(ends.size(), ids);
    size_t begin = 0;
    for (const size_t end : ends) {
      const std::string_view piece = text.substr(begin, end - begin);
      cache.append(piece, [&] { encode_piece(piece, symbols, ids); });
      begin = end;
    }
  }

 private:
  void encode_piece(std::string_view piece, std::vector<Symbol>& symbols, std::vector<int32_t>& ids) const {
    if (ignore_merges_ && take_whole(piece, ids)) return;
    symbols.clear();
    for (uint32_t i = 0; i < piece.size(); ++i) {
      symbols.push_back({byte_ids_[static_cast<uint8_t>(piece[i])], i, i + 1});
    }
    merge_symbols(symbols, [this](const Symbol& left, const Symbol& right) {
      return left.id < 0 || right.id < 0 ? Merge{} : ranks_.find(left.id, right.id);
    });
    // A byte that has no token is dropped, as HF and llama.cpp do: the unknown token of such files ends a
    // text.
    for (const Symbol& symbol : symbols) {
      if (symbol.id >= 0) ids.push_back(symbol.id);
    }
  }

  bool take_whole(std::string_view piece, std::vector<int32_t>& ids) const {
    std::string spelling;
    spell_bytes(piece, spelling);
    const auto id = vocabulary_.find(spelling);
    if (!id || !vocabulary_.is_text(*id)) return false;
    ids.push_back(*id);
    return true;
  }

  const Vocabulary& vocabulary_;
  PreTokenizer pre_tokenizer_;
  MergeRanks ranks_;
  bool ignore_merges_;
  std::array<int32_t, 256> byte_ids_{};
};

}  // namespace

Result<std::unique_ptr<SegmentEncoder>> make_byte_level_encoder(const Vocabulary& vocabulary) {
  const VocabSpec& spec = vocabulary.spec();
  std::vector<std::string> patterns = spec.split_patterns;
  bool ignore_merges = spec.ignore_merges;
  if (!spec.pre_tokenizer.empty()) {
    ASSIGN_OR_RETURN(const PreTokenizerRules* rules, find_pre_tokenizer_rules(spec.pre_tokenizer));
    patterns = rules->patterns;
    ignore_merges = ignore_merges || rules->ignore_merges;
  }
  if (spec.isolate_digits) patterns.insert(patterns.begin(), R"(\p{N})");
  ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer, PreTokenizer::create(patterns));
  ASSIGN_OR_RETURN(MergeRanks ranks, MergeRanks::create(vocabulary));
  return std::make_unique<ByteLevelEncoder>(vocabulary, std::move(pre_tokenizer), std::move(ranks),
                                            ignore_merges);
}

}  // namespace assay::tokenizer_internal
