// The text over which quality is measured, as token ids.
// Plain values; thread safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "records/quality_record.h"
#include "tokenizer/tokenizer.h"

namespace assay {

struct QualitySequence {
  std::vector<int32_t> tokens;
  int n_prompt = 0;      // leading tokens computed at the prefill activation format
  int first_scored = 1;  // the distribution of tokens[i] given tokens[0..i) is scored for i >= first_scored
};

struct QualityText {
  std::string name;
  std::vector<QualitySequence> sequences;

  int64_t n_tokens() const;
  int64_t n_scored() const;
  TextSource source() const;  // name, counts, and the xxh64 of the ids
  int longest() const;
};

// Cuts a text into windows of `window` tokens as llama-perplexity does: no overlap, the last partial window
// dropped, the first token of each window replaced by BOS where the vocabulary wants one, the second half
// scored. kInvalidArgument when the text is shorter than one window. max_windows 0: all.
Result<QualityText> make_windows(const Tokenizer& tokenizer, std::string_view text, std::string name,
                                 int window, int max_windows);

// The prompts that come with assay: written for it, several languages, code, arithmetic, dialogue, long
// context.
struct BuiltInPrompt {
  std::string id;
  std::string kind;  // "chat": rendered through the chat template; "text": continued as it is
  std::string prompt;
};
const std::vector<BuiltInPrompt>& built_in_prompts();

}  // namespace assay
