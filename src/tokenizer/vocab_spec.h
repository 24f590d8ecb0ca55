// Everything a tokenizer needs, independent of the file it came from. modelfile fills it from GGUF metadata
// or tokenizer.json; Tokenizer::create() validates it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

enum class VocabKind { kByteLevelBpe, kSentencePieceBpe, kUnigram, kCount };

enum class TokenKind : uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte, kCount };

struct AddedToken {
  int32_t id = 0;
  std::string text;
  bool special = false;     // skipped when decoding for people; recognised only when the caller allows it
  bool strip_left = false;  // swallows white space on that side of a match
  bool strip_right = false;
};

struct VocabSpec {
  VocabKind kind = VocabKind::kByteLevelBpe;
  std::vector<std::string>
      tokens;                    // by id, spelled as in the file (byte-level alphabet, U+2581 for space, ...)
  std::vector<float> scores;     // SentencePiece only; [tokens]
  std::vector<TokenKind> kinds;  // [tokens]; empty means all normal
  std::vector<std::string> merges;  // "left right", best first; byte-level BPE and BPE of tokenizer.json
  std::vector<AddedToken> added;    // matched before anything else, longest first

  std::string pre_tokenizer;  // GGUF's tokenizer.ggml.pre ("smollm", "llama-bpe", ...), or empty
  std::vector<std::string>
      split_patterns;           // explicit patterns (tokenizer.json); used when pre_tokenizer is empty
  bool isolate_digits = false;  // tokenizer.json: Digits(individual_digits = true) before the patterns

  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = true;           // SentencePiece
  bool remove_extra_whitespaces = false;  // SentencePiece
  bool byte_fallback = true;              // SentencePiece: unknown characters become <0xNN> tokens
  bool ignore_merges = false;             // a word that is a token as a whole is taken as that token
  bool normalise_nfc = false;
  std::vector<uint8_t> precompiled_charsmap;  // unigram: SentencePiece's normaliser; may be empty

  std::optional<int32_t> bos, eos, unknown, padding;
  std::vector<int32_t> end_of_generation;  // eos, eot, eom ...: generation stops on any of them
  std::string chat_template;               // Jinja source, or empty
};

}  // namespace assay
