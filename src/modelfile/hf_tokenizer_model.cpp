#include <algorithm>

#include "modelfile/hf_tokenizer_parts.h"
#include "modelfile/show_name.h"

namespace assay::modelfile_internal {
namespace {

namespace json = boost::json;

// Byte tokens of SentencePiece: <0x00> to <0xFF>.
bool is_byte_token(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' &&
         kDigits.find(text[3]) != std::string_view::npos && kDigits.find(text[4]) != std::string_view::npos;
}

// Every token has a place once its table is read; an id that stayed empty gets a name nothing can spell.
void name_gaps(VocabSpec& spec) {
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (spec.tokens[id].empty()) spec.tokens[id] = fmt::format("[UNUSED_{}]", id);
  }
}

class ModelReader {
 public:
  ModelReader(const JsonReader& model, VocabSpec& spec, const TextRules& rules)
      : model_(model), spec_(spec), rules_(rules) {}

  Result<void> read() {
    ASSIGN_OR_RETURN(auto type, model_.text("type"));
    // The oldest files leave the type out; only BPE has merges.
    if (!type && model_.find("merges") != nullptr) type = "BPE";
    if (type == "BPE") return read_bpe();
    if (type == "Unigram") return read_unigram();
    return fail(ErrorCode::kUnsupported, model_.where(), "expected a model of type BPE or Unigram, found {}",
                show_name(type.value_or("none")));
  }

 private:
  Result<void> read_bpe();
  Result<void> refuse_affixes() const;
  Result<void> read_vocab_table();
  Result<void> read_merges();
  Result<void> read_unigram();
  Result<void> read_pieces(const json::array& pieces);
  void mark_bytes();

  const JsonReader& model_;
  VocabSpec& spec_;
  const TextRules& rules_;
};

Result<void> ModelReader::read_bpe() {
  spec_.kind = rules_.byte_level ? VocabKind::kByteLevelBpe : VocabKind::kSentencePieceBpe;
  RETURN_IF_ERROR(refuse_affixes());
  RETURN_IF_ERROR(read_vocab_table());
  RETURN_IF_ERROR(read_merges());
  ASSIGN_OR_RETURN(const auto byte_fallback, model_.boolean("byte_fallback"));
  ASSIGN_OR_RETURN(const auto ignore_merges, model_.boolean("ignore_merges"));
  spec_.byte_fallback = byte_fallback.value_or(false);
  spec_.ignore_merges = ignore_merges.value_or(false);
  if (spec_.byte_fallback) mark_bytes();
  ASSIGN_OR_RETURN(const auto unknown, model_.text("unk_token"));
  if (!unknown) return {};
  const auto at = std::find(spec_.tokens.begin(), spec_.tokens.end(), *unknown);
  if (at == spec_.tokens.end()) return {};  // an added token: found there
  spec_.unknown = static_cast<int32_t>(at - spec_.tokens.begin());
  spec_.kinds[static_cast<size_t>(*spec_.unknown)] = TokenKind::kUnknown;
  return {};
}

Result<void> ModelReader::refuse_affixes() const {
  for (const std::string_view name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    ASSIGN_OR_RETURN(const auto affix, model_.text(name));
    if (affix && !affix->empty()) {
      return fail(ErrorCode::kUnsupported, model_.where(), "{} {} is not supported", name, show_name(*affix));
    }
  }
  return {};
}

Result<void> ModelReader::read_vocab_table() {
  ASSIGN_OR_RETURN(const auto vocab, model_.child("vocab"));
  if (!vocab) return model_.mismatch("vocab", "an object of tokens");
  const json::object& table = vocab->object();
  spec_.tokens.resize(table.size());
  spec_.kinds.assign(table.size(), TokenKind::kUnused);
  for (const auto& member : table) {
    if (!member.value().is_int64()) {
      return fail(ErrorCode::kCorrupt, vocab->where(), "{}: expected an id", show_name(member.key()));
    }
    RETURN_IF_ERROR(place_token(spec_, vocab->where(), member.value().get_int64(), member.key()));
  }
  name_gaps(spec_);
  return {};
}

Result<void> ModelReader::read_merges() {
  ASSIGN_OR_RETURN(const json::array* merges, model_.array("merges"));
  if (merges == nullptr) return model_.mismatch("merges", "an array");
  spec_.merges.reserve(merges->size());
  for (const json::value& merge : *merges) {
    if (const auto* text = merge.if_string()) {
      spec_.merges.emplace_back(text->begin(), text->end());
      continue;
    }
    const auto* pair = merge.if_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string() || !(*pair)[1].is_string()) {
      return fail(ErrorCode::kCorrupt, model_.where(), "merge {}: expected 'left right' or a pair",
                  spec_.merges.size());
    }
    const std::string_view left = (*pair)[0].get_string();
    const std::string_view right = (*pair)[1].get_string();
    if (left.find(' ') != std::string_view::npos || right.find(' ') != std::string_view::npos) {
      return fail(ErrorCode::kUnsupported, model_.where(), "merge {} has a space inside a token",
                  spec_.merges.size());
    }
    spec_.merges.push_back(fmt::format("{} {}", left, right));
  }
  return {};
}

void ModelReader::mark_bytes() {
  for (size_t id = 0; id < spec_.tokens.size(); ++id) {
    if (is_byte_token(spec_.tokens[id])) spec_.kinds[id] = TokenKind::kByte;
  }
}

Result<void> ModelReader::read_unigram() {
  spec_.kind = VocabKind::kUnigram;
  ASSIGN_OR_RETURN(const json::array* pieces, model_.array("vocab"));
  if (pieces == nullptr) return model_.mismatch("vocab", "an array of pieces with scores");
  RETURN_IF_ERROR(read_pieces(*pieces));
  ASSIGN_OR_RETURN(const auto byte_fallback, model_.boolean("byte_fallback"));
  spec_.byte_fallback = byte_fallback.value_or(false);
  if (spec_.byte_fallback) mark_bytes();
  ASSIGN_OR_RETURN(const auto unknown, model_.integer("unk_id"));
  if (!unknown) return {};
  if (*unknown < 0 || static_cast<size_t>(*unknown) >= spec_.tokens.size()) {
    return fail(ErrorCode::kCorrupt, model_.where(), "unk_id {} is outside the {} pieces", *unknown,
                spec_.tokens.size());
  }
  spec_.unknown = static_cast<int32_t>(*unknown);
  spec_.kinds[static_cast<size_t>(*unknown)] = TokenKind::kUnknown;
  return {};
}

Result<void> ModelReader::read_pieces(const json::array& pieces) {
  for (const json::value& piece : pieces) {
    const auto* pair = piece.if_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string() || !(*pair)[1].is_number()) {
      return fail(ErrorCode::kCorrupt, model_.where(), "piece {}: expected a text and a score",
                  spec_.tokens.size());
    }
    const auto& text = (*pair)[0].get_string();
    spec_.tokens.emplace_back(text.begin(), text.end());
    spec_.scores.push_back(static_cast<float>((*pair)[1].to_number<double>()));
  }
  name_gaps(spec_);
  spec_.kinds.assign(spec_.tokens.size(), TokenKind::kNormal);
  return {};
}

}  // namespace

Result<void> place_token(VocabSpec& spec, std::string_view where, int64_t id, std::string_view text) {
  constexpr size_t kMostBeyond = 65536;
  constexpr size_t kMostTokens = size_t{1} << 24;
  if (text.empty()) return {};  // stays a gap
  if (id < 0 || static_cast<uint64_t>(id) >= std::min(spec.tokens.size() + kMostBeyond, kMostTokens)) {
    return fail(ErrorCode::kCorrupt, where, "token {} has id {}, far from the {} others", show_name(text), id,
                spec.tokens.size());
  }
  const auto at = static_cast<size_t>(id);
  if (at >= spec.tokens.size()) {
    spec.tokens.resize(at + 1);
    spec.kinds.resize(at + 1, TokenKind::kUnused);
    if (!spec.scores.empty()) spec.scores.resize(at + 1, 0.0F);
  }
  if (spec.kinds[at] != TokenKind::kUnused && spec.tokens[at] != text) {
    return fail(ErrorCode::kCorrupt, where, "tokens {} and {} both have id {}", show_name(spec.tokens[at]),
                show_name(text), id);
  }
  spec.tokens[at] = text;
  if (spec.kinds[at] == TokenKind::kUnused) spec.kinds[at] = TokenKind::kNormal;
  return {};
}

Result<void> read_tokenizer_model(const JsonReader& tokenizer, VocabSpec& spec, const TextRules& rules) {
  ASSIGN_OR_RETURN(const auto model, tokenizer.child("model"));
  if (!model) return tokenizer.mismatch("model", "an object");
  spec.add_space_prefix = rules.add_space_prefix;
  return ModelReader(*model, spec, rules).read();
}

Result<void> read_added_tokens(const JsonReader& tokenizer, VocabSpec& spec) {
  ASSIGN_OR_RETURN(const json::array* tokens, tokenizer.array("added_tokens"));
  if (tokens == nullptr) return {};
  for (const json::value& value : *tokens) {
    ASSIGN_OR_RETURN(const JsonReader token, as_object(value, tokenizer.where() + ": added_tokens"));
    ASSIGN_OR_RETURN(const auto id, token.integer("id"));
    ASSIGN_OR_RETURN(const auto text, token.text("content"));
    if (!id || !text) return token.mismatch("id", "an id and a content");
    if (text->empty()) continue;
    RETURN_IF_ERROR(place_token(spec, token.where(), *id, *text));
    ASSIGN_OR_RETURN(const auto special, token.boolean("special"));
    ASSIGN_OR_RETURN(const auto strip_left, token.boolean("lstrip"));
    ASSIGN_OR_RETURN(const auto strip_right, token.boolean("rstrip"));
    TokenKind& kind = spec.kinds[static_cast<size_t>(*id)];
    if (kind != TokenKind::kUnknown)
      kind = special.value_or(false) ? TokenKind::kControl : TokenKind::kUserDefined;
    spec.added.push_back({.id = static_cast<int32_t>(*id),
                          .text = *text,
                          .special = special.value_or(false),
                          .strip_left = strip_left.value_or(false),
                          .strip_right = strip_right.value_or(false)});
  }
  name_gaps(spec);
  return {};
}

}  // namespace assay::modelfile_internal
