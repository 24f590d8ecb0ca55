// Cuts a text into the pieces inside which BPE merges: a chain of steps, each of which isolates the matches
// of a pattern (the gaps between matches are pieces too) in every piece that the step before left. This is
// what HF `tokenizers` calls a Sequence of Split(Isolated). Invalid UTF-8 is seen by the patterns as U+FFFD,
// one for each bad byte; the pieces keep the bytes. Thread safety: split() may run in parallel. Failure:
// create() only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tokenizer/split_step.h"

namespace assay::tokenizer_internal {

class PreTokenizer {
 public:
  // Patterns as in tokenizer.json. None: the text stays whole.
  static Result<PreTokenizer> create(std::span<const std::string> patterns);

  // `ends` becomes the ascending end offsets of the pieces; the last one is text.size(). Empty for an empty
  // text.
  void split(std::string_view text, std::vector<size_t>& ends) const;

 private:
  void split_valid(std::string_view text, std::vector<size_t>& ends) const;

  std::vector<std::unique_ptr<SplitStep>> steps_;
};

// What GGUF's tokenizer.ggml.pre names: a family of names with the same rules.
struct PreTokenizerRules {
  std::vector<std::string_view> names;
  std::vector<std::string> patterns;
  bool ignore_merges = false;  // a piece that is a token as a whole is that token
  bool raw_utf8 = false;       // merges run on characters with U+2581 for the space, not on spelled bytes
};

std::span<const PreTokenizerRules> all_pre_tokenizer_rules();
// Unknown names are kUnsupported; the error lists the known ones.
Result<const PreTokenizerRules*> find_pre_tokenizer_rules(std::string_view name);

}  // namespace assay::tokenizer_internal
