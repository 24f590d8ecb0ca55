// A checked VocabSpec with what encoding and decoding look up: spelling to id, id to bytes, which ids are
// special. Thread safety: const methods may run in parallel. Failure: create() only. Cost: create() is linear
// in the vocabulary; look-ups are one hash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "tokenizer/vocab_spec.h"

namespace assay::tokenizer_internal {

class Vocabulary {
 public:
  static constexpr size_t kMaxTokens = size_t{1} << 24;
  static constexpr size_t kMaxTokenBytes = size_t{1} << 16;

  // Sizes that disagree, duplicate spellings and ids out of range are kCorrupt.
  static Result<Vocabulary> create(VocabSpec spec);

  const VocabSpec& spec() const { return spec_; }
  int32_t size() const { return static_cast<int32_t>(spec_.tokens.size()); }
  bool contains(int32_t id) const { return id >= 0 && id < size(); }

  std::optional<int32_t> find(std::string_view spelling) const;
  // What the token stands for in a text. Empty when the id is out of range.
  std::string_view bytes(int32_t id) const;
  TokenKind kind(int32_t id) const { return spec_.kinds.empty() ? TokenKind::kNormal : spec_.kinds[id]; }
  bool is_special(int32_t id) const { return contains(id) && special_[id]; }
  bool is_end_of_generation(int32_t id) const { return contains(id) && ends_generation_[id]; }
  // May the tokenizer of ordinary text produce it? Not special, unused or a byte token.
  bool is_text(int32_t id) const;
  // The <0xNN> token of each byte; -1 where there is none.
  const std::vector<int32_t>& byte_tokens() const { return byte_tokens_; }

  // Everything that is matched before ordinary text is tokenized; texts are distinct.
  std::vector<AddedToken> matched_tokens() const;

 private:
  explicit Vocabulary(VocabSpec spec) : spec_(std::move(spec)) {}
  Result<void> check_sizes() const;
  Result<void> check_ids() const;
  Result<void> index_spellings();
  void mark_special();
  void find_byte_tokens();
  void expand_bytes();
  std::string bytes_of(int32_t id) const;

  VocabSpec spec_;
  std::unordered_map<std::string_view, int32_t> ids_;  // views into spec_.tokens
  std::vector<bool> special_, ends_generation_;
  std::vector<int32_t> byte_tokens_;
  std::string blob_;             // the bytes of all tokens
  std::vector<size_t> offsets_;  // [size() + 1] into blob_
};

// The byte that a spelling like <0x0A> stands for.
std::optional<uint8_t> parse_byte_token(std::string_view spelling);

}  // namespace assay::tokenizer_internal
