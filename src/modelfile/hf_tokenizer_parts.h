// The parts of tokenizer.json, each read into a VocabSpec. Internal to modelfile; pure; thread safe.
// Called in this order: normaliser, pre-tokenizer, model, added tokens.
#pragma once

#include "base/error.h"
#include "modelfile/json_document.h"
#include "tokenizer/vocab_spec.h"

namespace assay::modelfile_internal {

// What the normaliser and pre-tokenizer say together.
struct TextRules {
  bool byte_level = false;    // bytes are spelled in the GPT-2 alphabet
  bool marks_spaces = false;  // U+2581 stands for the space
  bool add_space_prefix = false;
};

// "normalizer": NFC, the SentencePiece forms (Prepend, Replace, Precompiled), and sequences of them.
Result<void> read_normalizer(const JsonReader& tokenizer, VocabSpec& spec, TextRules& rules);
// "pre_tokenizer": Split, ByteLevel, Digits, Punctuation, Metaspace, and sequences of them.
Result<void> read_pre_tokenizer(const JsonReader& tokenizer, VocabSpec& spec, TextRules& rules);
// "model": BPE and Unigram. Sets kind, tokens, scores, merges, unknown.
Result<void> read_tokenizer_model(const JsonReader& tokenizer, VocabSpec& spec, const TextRules& rules);
// "added_tokens": into spec.tokens, spec.kinds and spec.added.
Result<void> read_added_tokens(const JsonReader& tokenizer, VocabSpec& spec);

// Puts `text` at `id`, growing spec.tokens by at most 65536 beyond what it holds; kCorrupt when the id is
// taken by another text, negative, or too far away. New entries in between are unused until they are placed.
Result<void> place_token(VocabSpec& spec, std::string_view where, int64_t id, std::string_view text);

}  // namespace assay::modelfile_internal
