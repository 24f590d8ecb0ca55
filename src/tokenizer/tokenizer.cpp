#include "tokenizer/tokenizer.h"

#include <utility>

#include "tokenizer/added_token_matcher.h"
#include "tokenizer/nfc/nfc.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/segment_encoder.h"
#include "tokenizer/vocabulary.h"

namespace assay {

using tokenizer_internal::AddedTokenMatcher;
using tokenizer_internal::SegmentEncoder;
using tokenizer_internal::TextPiece;
using tokenizer_internal::Vocabulary;

namespace {

// Encoders count in 32 bits; longer texts are encoded in stretches of this size.
constexpr size_t kMaxSegmentBytes = size_t{1} << 30;

// Some names mean BPE over raw characters, although their files say byte-level.
void settle_kind(VocabSpec& spec) {
  if (spec.kind != VocabKind::kByteLevelBpe || spec.pre_tokenizer.empty()) return;
  const auto rules = tokenizer_internal::find_pre_tokenizer_rules(spec.pre_tokenizer);
  if (!rules || !(*rules)->raw_utf8) return;
  spec.kind = VocabKind::kSentencePieceBpe;
  spec.add_space_prefix = false;
  spec.byte_fallback = true;
}

Result<std::unique_ptr<SegmentEncoder>> make_encoder(const Vocabulary& vocabulary) {
  switch (vocabulary.spec().kind) {
    case VocabKind::kByteLevelBpe:
      return tokenizer_internal::make_byte_level_encoder(vocabulary);
    case VocabKind::kSentencePieceBpe:
      return tokenizer_internal::make_sentencepiece_encoder(vocabulary);
    case VocabKind::kUnigram:
      return tokenizer_internal::make_unigram_encoder(vocabulary);
    case VocabKind::kCount:
      break;
  }
  return fail(ErrorCode::kUnsupported, "vocabulary", "unknown kind {}",
              static_cast<int>(vocabulary.spec().kind));
}

}  // namespace

struct Tokenizer::State {
  explicit State(Vocabulary checked) : vocabulary(std::move(checked)), added(vocabulary.matched_tokens()) {}

  void encode_text(std::string_view text, std::vector<int32_t>& ids) const {
    std::string normalised;
    if (vocabulary.spec().normalise_nfc) text = normalised = tokenizer_internal::normalise_nfc(text);
    for (size_t at = 0; at < text.size(); at += kMaxSegmentBytes) {
      encoder->encode(text.substr(at, kMaxSegmentBytes), ids);
    }
  }

  Vocabulary vocabulary;
  AddedTokenMatcher added;
  std::unique_ptr<SegmentEncoder> encoder;  // refers to `vocabulary`
};

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::create(VocabSpec spec) {
  settle_kind(spec);
  ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::create(std::move(spec)));
  auto state = std::make_unique<State>(std::move(vocabulary));
  ASSIGN_OR_RETURN(state->encoder, make_encoder(state->vocabulary));
  return Tokenizer(std::move(state));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<TextPiece> pieces;
  state_->added.split(text, options.parse_special, options.literal, pieces);
  const VocabSpec& vocab = spec();
  std::vector<int32_t> ids;
  if (options.add_bos && vocab.add_bos && (pieces.empty() || pieces.front().id != *vocab.bos)) {
    ids.push_back(*vocab.bos);
  }
  for (const TextPiece& piece : pieces) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
      continue;
    }
    state_->encode_text(piece.text, ids);
  }
  if (options.add_bos && vocab.add_eos && (pieces.empty() || pieces.back().id != *vocab.eos)) {
    ids.push_back(*vocab.eos);
  }
  return ids;
}

std::vector<TextRange> Tokenizer::find_special(std::string_view text) const {
  return state_->added.find_special(text);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string text;
  for (const int32_t id : ids) {
    if (skip_special && is_special(id)) continue;
    text += token_bytes(id);
  }
  if (strips_first_space() && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

bool Tokenizer::strips_first_space() const {
  return spec().kind != VocabKind::kByteLevelBpe && spec().add_space_prefix;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  return state_->vocabulary.bytes(id);
}

int32_t Tokenizer::vocab_size() const {
  return state_->vocabulary.size();
}

std::optional<int32_t> Tokenizer::bos() const {
  return spec().bos;
}

std::optional<int32_t> Tokenizer::eos() const {
  return spec().eos;
}

bool Tokenizer::is_special(int32_t id) const {
  return state_->vocabulary.is_special(id);
}

bool Tokenizer::is_end_of_generation(int32_t id) const {
  return state_->vocabulary.is_end_of_generation(id);
}

std::optional<int32_t> Tokenizer::find(std::string_view token_text) const {
  return state_->vocabulary.find(token_text);
}

const VocabSpec& Tokenizer::spec() const {
  return state_->vocabulary.spec();
}

}  // namespace assay
