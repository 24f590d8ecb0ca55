// JSON bodies to typed requests. Pure: no engine, no tokenizer, no sockets; fuzzed. Strict: unknown and
// unsupported parameters are refused by name, types and ranges are checked, nesting is limited to 32, numbers
// must be finite. Source: OpenAI API reference (chat completions, completions); top_k, min_p and
// repetition_penalty as in vLLM. Failure: ApiError, status 400. Memory: proportional to the body, whose size
// the HTTP layer bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/sampling.h"
#include "serve/api_error.h"
#include "serve/prompt_fields.h"
#include "serve/response_format.h"
#include "serve/tool_request.h"

namespace assay {

inline constexpr int kMaxPriority = 100;  // of `priority`, either way

// What the server and its model allow.
struct ApiLimits {
  int32_t n_vocab = 0;     // token ids in prompts and logit_bias must be below
  int max_choices = 16;    // n
  int max_prompts = 64;    // of one completion request
  int max_sequences = 64;  // prompts * n
  int max_messages = 4096;
  int max_stop = 16;          // stop strings
  int max_stop_bytes = 1024;  // of one
  int max_inputs = 2048;      // of one request for embeddings
  int max_json_depth = 32;
};

struct GenerationOptions {
  std::string model;
  SamplingParams sampling;
  int64_t max_tokens = -1;  // -1: as many as the context allows
  int n = 1;
  std::vector<std::string> stop;
  bool stream = false;
  bool include_usage = false;  // a last chunk with usage
  ResponseFormat response_format;
  std::optional<int> priority;  // lower is served first, as in vLLM
  bool ignore_eos = false;      // go on behind the model's end, up to max_tokens
};

struct ChatCompletionRequest {
  GenerationOptions options;
  std::vector<ChatMessage> messages;  // roles system, user, assistant, tool
  ToolRequest tools;
};

struct CompletionRequest {
  GenerationOptions options;
  std::vector<PromptInput> prompts;
  bool parse_special = true;  // special tokens spelled in a text prompt are those tokens, as in vLLM
  bool echo = false;          // the prompt belongs to the answer; with logprobs, its tokens too
};

ApiResult<ChatCompletionRequest> parse_chat_request(std::string_view body, const ApiLimits& limits);
ApiResult<CompletionRequest> parse_completion_request(std::string_view body, const ApiLimits& limits);

// The seed of choice `index`: choices of one request must differ, and the same request must repeat.
SamplingParams sampling_of_choice(const SamplingParams& sampling, int index);

}  // namespace assay
