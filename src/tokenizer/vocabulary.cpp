#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/sentencepiece_normalizer.h"

namespace assay::tokenizer_internal {
namespace {

constexpr std::string_view kWhere = "vocabulary";

Result<void> check_id(std::string_view name, int32_t id, size_t count) {
  if (id >= 0 && static_cast<size_t>(id) < count) return {};
  return fail(ErrorCode::kCorrupt, kWhere, "expected {} id below {}, found {}", name, count, id);
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t next = std::min(text.find(from, at), text.size());
    out += text.substr(at, next - at);
    if (next < text.size()) out += to;
    at = next + from.size();
  }
  return out;
}

bool needs_scores(const VocabSpec& spec) {
  return spec.kind == VocabKind::kUnigram ||
         (spec.kind == VocabKind::kSentencePieceBpe && spec.merges.empty());
}

}  // namespace

std::optional<uint8_t> parse_byte_token(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return std::nullopt;
  uint8_t byte = 0;
  const auto [end, error] = std::from_chars(spelling.data() + 3, spelling.data() + 5, byte, 16);
  if (error != std::errc() || end != spelling.data() + 5) return std::nullopt;
  return byte;
}

Result<Vocabulary> Vocabulary::create(VocabSpec spec) {
  Vocabulary vocabulary(std::move(spec));
  RETURN_IF_ERROR(vocabulary.check_sizes());
  RETURN_IF_ERROR(vocabulary.check_ids());
  vocabulary.mark_special();
  RETURN_IF_ERROR(vocabulary.index_spellings());
  vocabulary.find_byte_tokens();
  vocabulary.expand_bytes();
  return vocabulary;
}

Result<void> Vocabulary::check_sizes() const {
  const size_t count = spec_.tokens.size();
  if (count == 0) return fail(ErrorCode::kCorrupt, kWhere, "expected tokens, found none");
  if (count > kMaxTokens || spec_.merges.size() > kMaxTokens) {
    return fail(ErrorCode::kCorrupt, kWhere, "expected at most {} tokens and merges, found {} and {}",
                kMaxTokens, count, spec_.merges.size());
  }
  for (size_t id = 0; id < count; ++id) {
    if (spec_.tokens[id].size() > kMaxTokenBytes) {
      return fail(ErrorCode::kCorrupt, kWhere, "expected tokens of at most {} bytes, found {} in token {}",
                  kMaxTokenBytes, spec_.tokens[id].size(), id);
    }
  }
  if (!spec_.kinds.empty() && spec_.kinds.size() != count) {
    return fail(ErrorCode::kCorrupt, kWhere, "expected {} token kinds, found {}", count, spec_.kinds.size());
  }
  const auto bad_kind = [](TokenKind kind) { return kind >= TokenKind::kCount; };
  if (std::ranges::any_of(spec_.kinds, bad_kind))
    return fail(ErrorCode::kCorrupt, kWhere, "unknown token kind");
  if (!needs_scores(spec_)) return {};
  if (spec_.scores.size() != count) {
    return fail(ErrorCode::kCorrupt, kWhere, "expected {} token scores, found {}", count,
                spec_.scores.size());
  }
  const auto finite =
      std::ranges::find_if_not(spec_.scores, [](float score) { return std::isfinite(score); });
  if (finite != spec_.scores.end()) {
    return fail(ErrorCode::kCorrupt, kWhere, "expected finite scores, found {} for token {}", *finite,
                finite - spec_.scores.begin());
  }
  return {};
}

Result<void> Vocabulary::check_ids() const {
  const size_t count = spec_.tokens.size();
  const std::pair<std::string_view, std::optional<int32_t>> named[] = {
      {"BOS", spec_.bos}, {"EOS", spec_.eos}, {"unknown", spec_.unknown}, {"padding", spec_.padding}};
  for (const auto& [name, id] : named) {
    if (id) RETURN_IF_ERROR(check_id(name, *id, count));
  }
  for (const int32_t id : spec_.end_of_generation) RETURN_IF_ERROR(check_id("end-of-generation", id, count));
  std::unordered_map<std::string_view, int32_t> seen;
  for (const AddedToken& token : spec_.added) {
    RETURN_IF_ERROR(check_id("added token", token.id, count));
    if (token.text.size() > kMaxTokenBytes) {
      return fail(ErrorCode::kCorrupt, kWhere, "added token {} has {} bytes", token.id, token.text.size());
    }
    const auto [earlier, fresh] = seen.emplace(token.text, token.id);
    if (!fresh && earlier->second != token.id) {
      return fail(ErrorCode::kCorrupt, kWhere, "added tokens {} and {} are both '{}'", earlier->second,
                  token.id, token.text);
    }
  }
  if (spec_.add_bos && !spec_.bos)
    return fail(ErrorCode::kCorrupt, kWhere, "BOS is to be added, but has no id");
  if (spec_.add_eos && !spec_.eos)
    return fail(ErrorCode::kCorrupt, kWhere, "EOS is to be added, but has no id");
  return {};
}

void Vocabulary::mark_special() {
  special_.assign(spec_.tokens.size(), false);
  ends_generation_.assign(spec_.tokens.size(), false);
  for (int32_t id = 0; id < size(); ++id) {
    special_[id] = kind(id) == TokenKind::kControl || kind(id) == TokenKind::kUnknown;
  }
  for (const AddedToken& token : spec_.added) {
    if (token.special) special_[token.id] = true;
  }
  for (const auto& id : {spec_.bos, spec_.eos}) {
    if (id) special_[*id] = true;
  }
  for (const int32_t id : spec_.end_of_generation) {
    special_[id] = true;
    ends_generation_[id] = true;
  }
  if (spec_.eos) ends_generation_[*spec_.eos] = true;
}

// Unused and empty entries may repeat: files pad their vocabulary with them.
Result<void> Vocabulary::index_spellings() {
  ids_.reserve(spec_.tokens.size());
  for (int32_t id = 0; id < size(); ++id) {
    const std::string& spelling = spec_.tokens[id];
    if (spelling.empty()) continue;
    const auto [earlier, fresh] = ids_.emplace(spelling, id);
    if (fresh || kind(id) == TokenKind::kUnused) continue;
    if (kind(earlier->second) != TokenKind::kUnused) {
      return fail(ErrorCode::kCorrupt, kWhere, "tokens {} and {} are both '{}'", earlier->second, id,
                  spelling);
    }
    earlier->second = id;
  }
  return {};
}

void Vocabulary::find_byte_tokens() {
  byte_tokens_.assign(256, -1);
  if (spec_.kind == VocabKind::kByteLevelBpe) return;
  for (int32_t id = 0; id < size(); ++id) {
    if (kind(id) != TokenKind::kByte && (kind(id) != TokenKind::kNormal || !spec_.byte_fallback)) continue;
    if (const auto byte = parse_byte_token(spec_.tokens[id])) byte_tokens_[*byte] = id;
  }
}

void Vocabulary::expand_bytes() {
  std::vector<std::string_view> added(spec_.tokens.size());
  for (const AddedToken& token : spec_.added) added[token.id] = token.text;
  offsets_.reserve(spec_.tokens.size() + 1);
  for (int32_t id = 0; id < size(); ++id) {
    offsets_.push_back(blob_.size());
    // SentencePiece vocabularies spell spaces alike in added tokens, which Gemma has for runs of them.
    const bool literal = !added[id].empty() && (special_[id] || spec_.kind == VocabKind::kByteLevelBpe);
    blob_ += literal ? std::string(added[id]) : bytes_of(id);
  }
  offsets_.push_back(blob_.size());
}

std::string Vocabulary::bytes_of(int32_t id) const {
  const std::string& spelling = spec_.tokens[id];
  if (special_[id]) return spelling;
  if (spec_.kind == VocabKind::kByteLevelBpe) {
    return kind(id) == TokenKind::kUserDefined ? spelling : unspell_bytes(spelling).value_or(spelling);
  }
  if (const auto byte = parse_byte_token(spelling); byte && byte_tokens_[*byte] == id) {
    return std::string(1, static_cast<char>(*byte));
  }
  return replace_all(spelling, kSpaceMark, " ");
}

std::optional<int32_t> Vocabulary::find(std::string_view spelling) const {
  const auto found = ids_.find(spelling);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::string_view Vocabulary::bytes(int32_t id) const {
  if (!contains(id)) return {};
  return std::string_view(blob_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
}

bool Vocabulary::is_text(int32_t id) const {
  if (!contains(id) || special_[id]) return false;
  if (const auto byte = parse_byte_token(spec_.tokens[id]); byte && byte_tokens_[*byte] == id) return false;
  return kind(id) == TokenKind::kNormal || kind(id) == TokenKind::kUserDefined;
}

std::vector<AddedToken> Vocabulary::matched_tokens() const {
  std::vector<AddedToken> matched;
  std::unordered_set<std::string_view> taken;
  for (const AddedToken& token : spec_.added) {
    if (!token.text.empty() && taken.insert(token.text).second) matched.push_back(token);
  }
  for (int32_t id = 0; id < size(); ++id) {
    const bool user_defined = kind(id) == TokenKind::kUserDefined;
    if (!user_defined && !special_[id]) continue;
    const std::string& text = spec_.tokens[id];
    if (text.empty() || !taken.insert(text).second) continue;
    matched.push_back({.id = id, .text = text, .special = special_[id] && !user_defined});
  }
  return matched;
}

}  // namespace assay::tokenizer_internal
