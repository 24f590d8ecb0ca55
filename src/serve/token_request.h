// The bodies of POST /tokenize and /detokenize. Source: vLLM's API (tokenizer endpoints). Pure. Failure:
// ApiError, status 400.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serve/openai_request.h"

namespace assay {

struct TokenizeRequest {
  std::string model;                  // empty: whatever is served
  std::string prompt;                 // or:
  std::vector<ChatMessage> messages;  // as the chat template renders them, ready for the answer
  ToolRequest tools;
  bool add_special_tokens = true;  // of a prompt: those that the model wants at the ends of a text
  bool parse_special = true;       // of a prompt: special tokens spelled in it are those tokens
  bool return_token_strs = false;
};

struct DetokenizeRequest {
  std::string model;
  std::vector<int32_t> tokens;
};

ApiResult<TokenizeRequest> parse_tokenize_request(std::string_view body, const ApiLimits& limits);
ApiResult<DetokenizeRequest> parse_detokenize_request(std::string_view body, const ApiLimits& limits);

}  // namespace assay
