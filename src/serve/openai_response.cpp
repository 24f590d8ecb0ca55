#include "serve/openai_response.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "serve/utf8_text.h"

namespace assay {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 4> kFinishNames = {"stop", "length", "cancelled", "error"};
static_assert(kFinishNames.size() == static_cast<size_t>(FinishReason::kCount));

json::object head(const ResponseIdentity& identity, std::string_view object_name) {
  return {{"id", identity.id},
          {"object", json::string(object_name)},
          {"created", identity.created},
          {"model", identity.model},
          {"system_fingerprint", identity.fingerprint}};
}

json::value text_or_null(std::string_view text) {
  return text.empty() ? json::value(nullptr) : json::value(json::string(text));
}

json::object usage_object(const UsageTotals& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", json::object{{"cached_tokens", usage.cached_prompt_tokens}}}};
}

// JSON has no infinity; a token that a mask made impossible is OpenAI's -9999.
double finite(float logprob) {
  return std::max(static_cast<double>(logprob), -9999.0);
}

json::object chat_token(const NamedLogprob& token) {
  json::array bytes;
  for (const char byte : token.bytes) bytes.emplace_back(static_cast<unsigned char>(byte));
  return {{"token", replace_invalid_utf8(token.bytes)},
          {"logprob", finite(token.logprob)},
          {"bytes", std::move(bytes)}};
}

json::object chat_logprobs(std::span<const TokenLogprobs> tokens) {
  json::array content;
  for (const TokenLogprobs& token : tokens) {
    json::object entry = chat_token(token.chosen);
    json::array top;
    for (const NamedLogprob& other : token.top) top.push_back(chat_token(other));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// Bytes that are not UTF-8 are written as OpenAI does: "bytes:\xe2\x82".
std::string completion_token_name(std::string_view bytes) {
  if (is_valid_utf8(bytes)) return std::string(bytes);
  std::string name = "bytes:";
  for (const char byte : bytes) name += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return name;
}

json::object completion_logprobs(std::span<const TokenLogprobs> tokens, size_t text_offset) {
  json::array names, values, tops, offsets;
  for (const TokenLogprobs& token : tokens) {
    names.emplace_back(completion_token_name(token.chosen.bytes));
    values.push_back(token.first ? json::value(nullptr) : json::value(finite(token.chosen.logprob)));
    offsets.emplace_back(text_offset);
    text_offset += count_characters(token.chosen.bytes);
    if (token.first) {
      tops.emplace_back(nullptr);
      continue;
    }
    json::object top;
    for (const NamedLogprob& other : token.top)
      top[completion_token_name(other.bytes)] = finite(other.logprob);
    tops.push_back(std::move(top));
  }
  return {{"tokens", std::move(names)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

json::value logprobs_value(Endpoint endpoint, bool wanted, std::span<const TokenLogprobs> tokens,
                           size_t offset) {
  if (!wanted) return nullptr;
  return endpoint == Endpoint::kChat ? chat_logprobs(tokens) : completion_logprobs(tokens, offset);
}

json::array tool_calls_array(std::span<const ToolCallPiece> calls, bool streamed) {
  json::array list;
  for (const ToolCallPiece& call : calls) {
    json::object function, entry;
    if (streamed) entry["index"] = call.index;
    if (!call.id.empty()) {
      entry["id"] = call.id;
      entry["type"] = "function";
      function["name"] = call.name;
    }
    function["arguments"] = call.arguments;
    entry["function"] = std::move(function);
    list.push_back(std::move(entry));
  }
  return list;
}

json::object message_object(const FinishedChoice& choice) {
  json::object message{{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
  if (!choice.tool_calls.empty()) {
    if (choice.text.empty()) message["content"] = nullptr;
    message["tool_calls"] = tool_calls_array(choice.tool_calls, false);
  }
  return message;
}

NamedLogprob named(int32_t id, float logprob, const Tokenizer& tokenizer) {
  return {std::string(tokenizer.token_bytes(id)), logprob};
}

}  // namespace

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string_view finish_reason_name(FinishReason reason) {
  return kFinishNames.at(static_cast<size_t>(reason));
}

TokenLogprobs name_logprobs(const TokenEvent& event, const Tokenizer& tokenizer) {
  TokenLogprobs result;
  result.chosen = named(event.token, event.logprob.value_or(0), tokenizer);
  result.top.reserve(event.top.size());
  for (const TokenLogprob& other : event.top)
    result.top.push_back(named(other.token, other.logprob, tokenizer));
  return result;
}

TokenLogprobs name_logprobs(const PromptTokenLogprob& token, const Tokenizer& tokenizer) {
  TokenLogprobs result;
  result.chosen = named(token.token, token.logprob, tokenizer);
  for (const TokenLogprob& other : token.top)
    result.top.push_back(named(other.token, other.logprob, tokenizer));
  return result;
}

std::string whole_response(const ResponseIdentity& identity, std::span<const FinishedChoice> choices,
                           const UsageTotals& usage) {
  const bool chat = identity.endpoint == Endpoint::kChat;
  json::object response = head(identity, chat ? "chat.completion" : "text_completion");
  json::array list;
  for (size_t i = 0; i < choices.size(); ++i) {
    const FinishedChoice& choice = choices[i];
    json::object entry{{"index", i}};
    if (chat) {
      entry["message"] = message_object(choice);
    } else {
      entry["text"] = choice.text;
    }
    const bool wanted = choice.logprobs.has_value();
    entry["logprobs"] = logprobs_value(identity.endpoint, wanted,
                                       wanted ? std::span(*choice.logprobs) : std::span<TokenLogprobs>(), 0);
    entry["finish_reason"] = json::string(choice.finish_reason);
    list.push_back(std::move(entry));
  }
  response["choices"] = std::move(list);
  response["usage"] = usage_object(usage);
  return json::serialize(response);
}

std::string chunk(const ResponseIdentity& identity, const ChunkContent& content) {
  const bool chat = identity.endpoint == Endpoint::kChat;
  json::object response = head(identity, chat ? "chat.completion.chunk" : "text_completion");
  json::object entry{{"index", content.index}};
  if (chat) {
    json::object delta;
    if (content.first) delta["role"] = "assistant";
    if (!content.tool_calls.empty()) delta["tool_calls"] = tool_calls_array(content.tool_calls, true);
    if (!content.text.empty()) {
      delta["content"] = json::string(content.text);
    } else if (content.first) {
      delta["content"] = content.tool_calls.empty() ? json::value("") : json::value(nullptr);
    }
    entry["delta"] = std::move(delta);
  } else {
    entry["text"] = json::string(content.text);
  }
  const bool has_logprobs = content.with_logprobs && !content.logprobs.empty();
  entry["logprobs"] = logprobs_value(identity.endpoint, has_logprobs, content.logprobs, content.text_offset);
  entry["finish_reason"] = text_or_null(content.finish_reason);
  response["choices"] = json::array{std::move(entry)};
  if (identity.chunk_usage_null) response["usage"] = nullptr;
  return json::serialize(response);
}

std::string usage_chunk(const ResponseIdentity& identity, const UsageTotals& usage) {
  json::object response =
      head(identity, identity.endpoint == Endpoint::kChat ? "chat.completion.chunk" : "text_completion");
  response["choices"] = json::array();
  response["usage"] = usage_object(usage);
  return json::serialize(response);
}

static json::object model_json(const ModelListing& model) {
  return {{"id", model.id},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "assay"},
          {"max_model_len", model.context_length},
          {"precision", model.precision}};
}

std::string model_object(const ModelListing& model) {
  return json::serialize(model_json(model));
}

std::string model_list(std::span<const ModelListing> models) {
  json::array data;
  for (const ModelListing& model : models) data.push_back(model_json(model));
  return json::serialize(json::object{{"object", "list"}, {"data", std::move(data)}});
}

}  // namespace assay
