// Text to token ids and back: byte-level BPE, SentencePiece BPE and unigram.
// Sources: Sennrich et al. 2016 (BPE), Kudo 2018 (unigram), the behaviour of HF `tokenizers` and llama.cpp.
// Thread safety: const methods may run in parallel. Failure: create() only; encode() accepts any bytes.
// Cost: encode is O(n log n) in the word length, O(n) in the text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tokenizer/vocab_spec.h"

namespace assay {

struct TextRange {
  size_t begin = 0;  // bytes
  size_t end = 0;
};

struct EncodeOptions {
  // Also governs EOS. Honours the vocabulary's own settings; never a second BOS or EOS if the text spells
  // one.
  bool add_bos = true;
  bool parse_special =
      false;  // true for rendered chat templates: special tokens in the text become their ids
  // With parse_special: where it is not so, ascending. What touches one of these ranges is text.
  std::span<const TextRange> literal = {};
};

class Tokenizer {
 public:
  // Inconsistent sizes, duplicate or out-of-range ids, unknown pre-tokenizer, broken merges: one clear error.
  static Result<Tokenizer> create(VocabSpec spec);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
  // Where parse_special would find special tokens that are text without it: ascending, apart, each as large
  // as overlapping finds need. Cost: linear.
  std::vector<TextRange> find_special(std::string_view text) const;
  // Bytes of the whole sequence; may hold incomplete UTF-8 at the ends. Special tokens are left out on
  // request.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;
  // Raw bytes of one token as it appears inside a text (no prefix-space stripping); ids out of range give "".
  std::string_view token_bytes(int32_t id) const;

  int32_t vocab_size() const;
  std::optional<int32_t> bos() const;
  std::optional<int32_t> eos() const;
  bool is_special(int32_t id) const;
  bool is_end_of_generation(int32_t id) const;
  std::optional<int32_t> find(std::string_view token_text) const;  // by the spelling in the vocabulary
  const VocabSpec& spec() const;
  // SentencePiece puts a space before a text; the first space of a decoded text is that one.
  bool strips_first_space() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Turns a stream of ids into text that never ends inside a UTF-8 character. Invalid bytes become U+FFFD.
// Not thread safe; borrows the tokenizer.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  std::string push(int32_t id);  // the text that has become complete; often empty for multi-token characters
  std::string finish();          // what is left, with U+FFFD for an incomplete character

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  bool first_ = true;    // SentencePiece strips one leading space of the whole text
  std::string pending_;  // bytes of an incomplete character
};

}  // namespace assay
