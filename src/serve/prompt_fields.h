// What a request wants continued, embedded or counted: a string, an array of strings, an array of token ids
// or an array of those. Pure. Failure: ApiError, recorded in the reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "serve/field_reader.h"

namespace assay {

using PromptInput = std::variant<std::string, std::vector<int32_t>>;

struct PromptLimits {
  int32_t n_vocab = 0;  // token ids must be below
  int max_prompts = 1;
};

// The field `name`, which must be there. Empty: a failure was recorded.
std::vector<PromptInput> read_prompts(FieldReader& fields, std::string_view name, const PromptLimits& limits);

// True when `list` holds token ids below n_vocab, which are then put behind `ids`; otherwise a failure of the
// field `name` is recorded.
bool read_token_ids(FieldReader& fields, std::string_view name, const boost::json::array& list,
                    int32_t n_vocab, std::vector<int32_t>& ids);

}  // namespace assay
