// OpenAI's response objects as JSON text. Pure. Source: OpenAI API reference (chat completion object and
// chunk, completion object, model object).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace assay {

enum class Endpoint { kChat, kCompletion, kCount };

// What every object of one response repeats.
struct ResponseIdentity {
  Endpoint endpoint = Endpoint::kChat;
  std::string id;                 // "chatcmpl-..." or "cmpl-..."
  int64_t created = 0;            // Unix seconds
  std::string model;              // as /v1/models lists it
  std::string fingerprint;        // what the answer depends on besides the request: build and precision
  bool chunk_usage_null = false;  // stream_options.include_usage: every chunk but the last has "usage": null
};

// One token's log-probabilities with the bytes that the token stands for.
struct NamedLogprob {
  std::string bytes;
  float logprob = 0;
};
struct TokenLogprobs {
  NamedLogprob chosen;
  bool first = false;             // of a prompt: nothing stands before it, so it has no probability
  std::vector<NamedLogprob> top;  // best first
};
TokenLogprobs name_logprobs(const TokenEvent& event, const Tokenizer& tokenizer);
TokenLogprobs name_logprobs(const PromptTokenLogprob& token, const Tokenizer& tokenizer);

// One call of a function. In a stream, `id` and `name` come with the first piece alone.
struct ToolCallPiece {
  size_t index = 0;
  std::string id;
  std::string name;
  std::string arguments;  // JSON in a string, or a piece of it
};

// One finished choice of a response that is not streamed.
struct FinishedChoice {
  std::string text;
  std::string_view finish_reason;  // "stop", "length", "tool_calls"
  std::vector<ToolCallPiece> tool_calls;
  std::optional<std::vector<TokenLogprobs>> logprobs;
};

// Tokens of all choices; a prompt counts once however many choices it has.
struct UsageTotals {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_prompt_tokens = 0;
};

std::string_view finish_reason_name(FinishReason reason);  // "stop", "length", "cancelled", "error"

std::string whole_response(const ResponseIdentity& identity, std::span<const FinishedChoice> choices,
                           const UsageTotals& usage);

// Stream chunks. `first`: carries the role (chat). `text_offset`: characters of the choice before this piece,
// for completion logprobs.
struct ChunkContent {
  int index = 0;
  bool first = false;
  std::string_view text;
  std::span<const ToolCallPiece> tool_calls;
  std::span<const TokenLogprobs> logprobs;
  bool with_logprobs = false;  // the request asked for them
  size_t text_offset = 0;
  std::string_view finish_reason;  // empty: not the end
};
std::string chunk(const ResponseIdentity& identity, const ChunkContent& content);
std::string usage_chunk(const ResponseIdentity& identity, const UsageTotals& usage);

struct ModelListing {
  std::string id;
  int64_t created = 0;
  int context_length = 0;
  std::string precision;  // effective
};
std::string model_object(const ModelListing& model);
std::string model_list(std::span<const ModelListing> models);

// Characters (code points) of text that may hold broken UTF-8: bytes that do not continue one.
size_t count_characters(std::string_view text);

}  // namespace assay
