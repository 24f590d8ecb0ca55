// Which tokens end a generation. Files name one (eos); chat models end on others, known by their text.
// The rule is llama.cpp's, so that both stop at the same token. Internal to modelfile; pure; thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tokenizer/vocab_spec.h"

namespace assay::modelfile_internal {

// Ids that the file names, where it does.
struct NamedEnds {
  std::optional<int32_t> end_of_turn;
  std::optional<int32_t> end_of_message;
  std::optional<int32_t> fill_padding;  // fill-in-the-middle: padding, repository and file separators
  std::optional<int32_t> fill_repository;
  std::optional<int32_t> fill_separator;
};

// Sets spec.end_of_generation (sorted, distinct) from spec.eos, `named` and the texts of the tokens, and
// marks the tokens so found as control tokens in spec.kinds.
void find_end_of_generation(VocabSpec& spec, const NamedEnds& named);

}  // namespace assay::modelfile_internal
