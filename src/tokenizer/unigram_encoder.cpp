// Unigram (Kudo 2018): of all ways to cut the normalised text into tokens, the one with the highest sum of
// scores, found by Viterbi. A character that no token covers costs the lowest score less 10, as in
// SentencePiece.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "tokenizer/byte_trie.h"
#include "tokenizer/segment_encoder.h"
#include "tokenizer/sentencepiece_normalizer.h"
#include "tokenizer/utf8.h"

namespace assay::tokenizer_internal {
namespace {

constexpr double kUnknownPenalty = 10;
constexpr int32_t kUnknown = -1;

class UnigramEncoder : public SegmentEncoder {
 public:
  UnigramEncoder(const Vocabulary& vocabulary, SentencePieceNormalizer normalizer)
      : vocabulary_(vocabulary), normalizer_(std::move(normalizer)) {
    float lowest = std::numeric_limits<float>::max();
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      if (!vocabulary.is_text(id) || vocabulary.spec().tokens[id].empty()) continue;
      trie_.insert(vocabulary.spec().tokens[id], id);
      if (vocabulary.kind(id) == TokenKind::kNormal) lowest = std::min(lowest, vocabulary.spec().scores[id]);
    }
    unknown_score_ = lowest - kUnknownPenalty;
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const std::string normalized = normalizer_.normalize(text, false);
    const std::vector<Arrival> arrivals = find_best(normalized);
    std::vector<Token> tokens;
    for (size_t end = normalized.size(); end > 0; end = arrivals[end].from) {
      tokens.push_back({arrivals[end].id, arrivals[end].from, end});
    }
    std::ranges::reverse(tokens);
    emit(normalized, tokens, ids);
  }

 private:
  // The best way to reach an offset: which token ends here and where it starts.
  struct Arrival {
    double score = -std::numeric_limits<double>::infinity();
    size_t from = 0;
    int32_t id = kUnknown;
  };
  struct Token {
    int32_t id;
    size_t begin;
    size_t end;
  };

  std::vector<Arrival> find_best(std::string_view text) const {
    std::vector<Arrival> arrivals(text.size() + 1);
    arrivals[0].score = 0;
    for (size_t begin = 0; begin < text.size();) {
      const double score = arrivals[begin].score;
      const size_t next = begin + decode_utf8(text, begin).length;
      bool covered = false;
      uint32_t node = ByteTrie::kRoot;
      for (size_t end = begin; end < text.size();) {
        const auto child = trie_.step(node, static_cast<uint8_t>(text[end++]));
        if (!child) break;
        node = *child;
        const int32_t id = trie_.value(node);
        if (id < 0) continue;
        covered = covered || end == next;
        improve(arrivals[end], {score + score_of(id), begin, id});
      }
      if (!covered) improve(arrivals[next], {score + unknown_score_, begin, kUnknown});
      begin = next;
    }
    return arrivals;
  }

  static void improve(Arrival& arrival, const Arrival& candidate) {
    if (candidate.score > arrival.score) arrival = candidate;
  }

  double score_of(int32_t id) const {
    return vocabulary_.kind(id) == TokenKind::kUserDefined ? 0.0 : vocabulary_.spec().scores[id];
  }

  // An unknown character becomes byte tokens, or else neighbouring ones together one unknown token.
  void emit(std::string_view text, const std::vector<Token>& tokens, std::vector<int32_t>& ids) const {
    bool after_unknown = false;
    for (const Token& token : tokens) {
      const std::string_view bytes = text.substr(token.begin, token.end - token.begin);
      const bool spelled = token.id != kUnknown || spell_in_bytes(bytes, ids);
      if (token.id != kUnknown)
        ids.push_back(token.id);
      else if (!spelled && !after_unknown && vocabulary_.spec().unknown)
        ids.push_back(*vocabulary_.spec().unknown);
      after_unknown = !spelled;
    }
  }

  bool spell_in_bytes(std::string_view bytes, std::vector<int32_t>& ids) const {
    const auto token_of = [this](char byte) { return vocabulary_.byte_tokens()[static_cast<uint8_t>(byte)]; };
    if (!vocabulary_.spec().byte_fallback) return false;
    if (!std::ranges::all_of(bytes, [&](char byte) { return token_of(byte) >= 0; })) return false;
    for (const char byte : bytes) ids.push_back(token_of(byte));
    return true;
  }

  const Vocabulary& vocabulary_;
  SentencePieceNormalizer normalizer_;
  ByteTrie trie_;
  double unknown_score_ = 0;
};

}  // namespace

Result<std::unique_ptr<SegmentEncoder>> make_unigram_encoder(const Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(SentencePieceNormalizer normalizer, SentencePieceNormalizer::create(vocabulary.spec()));
  return std::make_unique<UnigramEncoder>(vocabulary, std::move(normalizer));
}

}  // namespace assay::tokenizer_internal
