// Texts and conversations to token ids that fit the model's context. Failure: ApiError, status 400, naming
// the field. Cost: linear in the text; what cannot fit is refused before it is encoded. Borrows the model.
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "serve/api_error.h"
#include "serve/openai_request.h"
#include "serve/served_model.h"

namespace assay {

class PromptEncoder {
 public:
  explicit PromptEncoder(const ServedModel& model);

  // By default plain text: what spells a special token is text.
  ApiResult<std::vector<int32_t>> text(std::string_view text, std::string_view field,
                                       EncodeOptions options = {}) const;
  // Texts as above; ids stay as they are.
  ApiResult<std::vector<std::vector<int32_t>>> inputs(std::span<const PromptInput> inputs,
                                                      std::string_view field,
                                                      EncodeOptions options = {}) const;
  // A conversation by the model's chat template, with `end` put behind it.
  ApiResult<std::vector<int32_t>> chat(const ChatCompletionRequest& request, std::string_view end) const;
  // Nothing when every prompt holds tokens and leaves room for the answer.
  std::optional<ApiError> check_lengths(std::span<const std::vector<int32_t>> prompts,
                                        const GenerationOptions& options, std::string_view field) const;

 private:
  const ServedModel& model_;
  size_t hopeless_bytes_ = 0;  // a longer text cannot fit into the context
};

}  // namespace assay
