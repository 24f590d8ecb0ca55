#include "serve/openai_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "serve/field_reader.h"
#include "serve/json_body.h"

namespace assay {
namespace {

namespace json = boost::json;

constexpr int64_t kMaxPriority = 100;
constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();

struct Unsupported {
  const char* name;
  const char* neutral;  // the value that asks for nothing
};

// Known to OpenAI's clients, not to this server.
constexpr std::array kUnsupported = {
    Unsupported{"functions", "[]"},
    Unsupported{"function_call", "\"none\""},
    Unsupported{"metadata", "{}"},
    Unsupported{"store", "false"},
    Unsupported{"modalities", "[\"text\"]"},
    Unsupported{"service_tier", "\"auto\""},
    Unsupported{"audio", "null"},
    Unsupported{"prediction", "null"},
    Unsupported{"reasoning_effort", "null"},
    Unsupported{"verbosity", "null"},
    Unsupported{"web_search_options", "null"},
    Unsupported{"prompt_cache_key", "null"},
    Unsupported{"safety_identifier", "null"},
};

void read_seed(FieldReader& fields, SamplingParams& sampling) {
  const json::value* seed = fields.any("seed");
  if (seed == nullptr) return;
  if (seed->is_int64()) {
    sampling.seed = static_cast<uint64_t>(seed->get_int64());
  } else if (seed->is_uint64()) {
    sampling.seed = seed->get_uint64();
  } else {
    fields.fail_type("seed", "a 64-bit integer", *seed);
  }
}

void read_logit_bias(FieldReader& fields, const ApiLimits& limits, SamplingParams& sampling) {
  const json::object* biases = fields.object("logit_bias");
  if (biases == nullptr) return;
  if (biases->size() > 1024) {
    return fields.fail("logit_bias", fmt::format("expected at most 1024 entries, found {}", biases->size()));
  }
  FieldReader entries(*biases, "logit_bias");
  for (const auto& entry : *biases) {
    const std::string_view key = entry.key();
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool whole = error == std::errc{} && end == key.data() + key.size();
    // One spelling of each id, so that none can come twice.
    if (!whole || id < 0 || id >= limits.n_vocab || std::to_string(id) != key) {
      return fields.fail("logit_bias", fmt::format("'{}' is not a token id from 0 to {}", key.substr(0, 40),
                                                   limits.n_vocab - 1));
    }
    if (const auto bias = entries.number(key, {-100, 100})) {
      sampling.logit_bias.emplace_back(id, static_cast<float>(*bias));
    } else if (!entries.failed()) {
      return fields.fail("logit_bias", fmt::format("expected a number for token {}, found null", id),
                         "invalid_type");
    }
  }
  if (entries.failed()) fields.fail_with(entries.error());
}

void read_sampling(FieldReader& fields, const ApiLimits& limits, SamplingParams& sampling) {
  const auto set = [&](std::string_view name, NumberRange range, float& target) {
    if (const auto value = fields.number(name, range)) target = static_cast<float>(*value);
  };
  set("temperature", {0, 2}, sampling.temperature);
  set("top_p", {0, 1, true}, sampling.top_p);
  set("min_p", {0, 1}, sampling.min_p);
  set("presence_penalty", {-2, 2}, sampling.presence_penalty);
  set("frequency_penalty", {-2, 2}, sampling.frequency_penalty);
  set("repetition_penalty", {0, 10, true}, sampling.repetition_penalty);
  // -1 is vLLM's spelling of "off".
  if (const auto top_k = fields.integer("top_k", -1, std::numeric_limits<int32_t>::max())) {
    sampling.top_k = *top_k < 0 ? 0 : static_cast<int>(*top_k);
  }
  read_seed(fields, sampling);
  read_logit_bias(fields, limits, sampling);
}

void read_stop(FieldReader& fields, const ApiLimits& limits, std::vector<std::string>& stop) {
  const json::value* value = fields.any("stop");
  if (value == nullptr) return;
  const auto add = [&](const json::value& entry) {
    if (!entry.is_string()) return fields.fail_type("stop", "a string or an array of strings", entry);
    const size_t size = entry.get_string().size();
    if (size == 0) return fields.fail("stop", "an empty stop string would end every answer before it begins");
    if (size > static_cast<size_t>(limits.max_stop_bytes)) {
      return fields.fail("stop", fmt::format("a stop string is longer than {} bytes", limits.max_stop_bytes));
    }
    stop.emplace_back(entry.get_string());
  };
  const json::array* list = value->if_array();
  if (list == nullptr) return add(*value);
  if (list->size() > static_cast<size_t>(limits.max_stop)) {
    return fields.fail(
        "stop", fmt::format("expected at most {} stop strings, found {}", limits.max_stop, list->size()));
  }
  for (const json::value& entry : *list) add(entry);
}

void read_stream_options(FieldReader& fields, GenerationOptions& options) {
  options.stream = fields.boolean("stream").value_or(false);
  const json::object* nested = fields.object("stream_options");
  if (nested == nullptr) return;
  if (!options.stream) return fields.fail("stream_options", "is allowed only when stream is true");
  FieldReader inner(*nested, "stream_options");
  options.include_usage = inner.boolean("include_usage").value_or(false);
  inner.refuse("include_obfuscation", "false", "is not supported");
  inner.finish();
  if (inner.failed()) fields.fail_with(inner.error());
}

// What both endpoints share.
void read_common(FieldReader& fields, const ApiLimits& limits, GenerationOptions& options) {
  options.model = fields.text("model").value_or("");
  if (options.model.empty()) {
    fields.fail("model", "is required: the name of a model as /v1/models lists it",
                "missing_required_parameter");
  }
  options.n = static_cast<int>(fields.integer("n", 1, limits.max_choices).value_or(1));
  read_sampling(fields, limits, options.sampling);
  read_stop(fields, limits, options.stop);
  read_stream_options(fields, options);
  options.response_format = read_response_format(fields);
  fields.text("user");
  if (const auto priority = fields.integer("priority", -kMaxPriority, kMaxPriority))
    options.priority = static_cast<int>(*priority);
  options.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  for (const Unsupported& field : kUnsupported) fields.refuse(field.name, field.neutral, "is not supported");
}

// --- chat ---

// "text" or [{"type": "text", "text": "..."}, ...].
std::optional<std::string> read_content(FieldReader& message) {
  const json::value* content = message.any("content");
  if (content == nullptr) {
    message.fail("content", "is required: a string or an array of text parts", "missing_required_parameter");
    return std::nullopt;
  }
  if (const json::string* text = content->if_string()) return std::string(*text);
  const json::array* parts = content->if_array();
  if (parts == nullptr || parts->empty()) {
    message.fail_type("content", "a string or a non-empty array of text parts", *content);
    return std::nullopt;
  }
  std::string joined;
  for (size_t i = 0; i < parts->size() && !message.failed(); ++i) {
    const std::string name = fmt::format("content[{}]", i);
    const json::object* part = (*parts)[i].if_object();
    if (part == nullptr) {
      message.fail_type(name, "an object", (*parts)[i]);
      break;
    }
    FieldReader inner(*part, message.full_name(name));
    const auto type = inner.text("type");
    if (!inner.failed() && (!type || *type != "text")) {
      inner.fail(
          "type",
          fmt::format("only \"text\" parts are supported, found \"{}\"", type.value_or("").substr(0, 40)),
          "unsupported_content");
    }
    const auto text = inner.text("text");
    if (!text) inner.fail("text", "is required", "missing_required_parameter");
    inner.finish();
    if (inner.failed()) message.fail_with(inner.error());
    joined += text.value_or("");
  }
  return joined;
}

void read_message(FieldReader& message, ChatMessage& out) {
  const auto role = message.text("role");
  if (!role) return message.fail("role", "is required", "missing_required_parameter");
  constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant", "tool"};
  if (std::ranges::find(kRoles, *role) == kRoles.end()) {
    return message.fail("role",
                        fmt::format("expected system, developer, user, assistant or tool, found \"{}\"",
                                    role->substr(0, 40)));
  }
  out.role = *role == "developer" ? "system" : *role;
  if (*role == "assistant") out.tool_calls = read_tool_calls(message);
  // An assistant that calls need not say anything.
  if (out.tool_calls.empty() || message.any("content") != nullptr)
    out.content = read_content(message).value_or("");
  if (*role == "tool") {
    out.tool_call_id = message.text("tool_call_id").value_or("");
    if (out.tool_call_id.empty()) message.fail("tool_call_id", "is required", "missing_required_parameter");
  }
  const auto name = message.text("name");  // chat templates use it for tools alone
  if (*role == "tool") out.name = name.value_or("");
  for (const char* field : {"refusal", "audio", "function_call"})
    message.refuse(field, "null", "is not supported");
  message.refuse("annotations", "[]", "is not supported");
  if (*role != "assistant") message.refuse("tool_calls", "[]", "is allowed only in an assistant's message");
  message.finish();
}

void read_messages(FieldReader& fields, const ApiLimits& limits, std::vector<ChatMessage>& messages) {
  const json::array* list = fields.array("messages");
  if (list == nullptr) {
    return fields.fail("messages", "is required: an array of messages", "missing_required_parameter");
  }
  if (list->empty() || list->size() > static_cast<size_t>(limits.max_messages)) {
    return fields.fail("messages",
                       fmt::format("expected 1 to {} messages, found {}", limits.max_messages, list->size()));
  }
  for (size_t i = 0; i < list->size() && !fields.failed(); ++i) {
    const std::string name = fmt::format("messages[{}]", i);
    const json::object* object = (*list)[i].if_object();
    if (object == nullptr) return fields.fail_type(name, "an object", (*list)[i]);
    FieldReader message(*object, name);
    read_message(message, messages.emplace_back());
    if (message.failed()) fields.fail_with(message.error());
  }
}

void read_chat_logprobs(FieldReader& fields, SamplingParams& sampling) {
  sampling.logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, 20);
  if (top && !sampling.logprobs) return fields.fail("top_logprobs", "is allowed only when logprobs is true");
  sampling.top_logprobs = static_cast<int>(top.value_or(0));
}

void read_chat_max_tokens(FieldReader& fields, GenerationOptions& options) {
  const auto older = fields.integer("max_tokens", 1, kMaxTokens);
  const auto newer = fields.integer("max_completion_tokens", 1, kMaxTokens);
  if (older && newer && *older != *newer) {
    return fields.fail("max_tokens", "max_tokens and max_completion_tokens disagree; give one of them");
  }
  if (older || newer) options.max_tokens = newer ? *newer : *older;
}

// --- completions ---

// True when `value` is an array of token ids in range; otherwise a failure is recorded.
bool read_ids(FieldReader& fields, const json::array& list, const ApiLimits& limits,
              std::vector<int32_t>& ids) {
  ids.reserve(list.size());
  for (const json::value& entry : list) {
    if (!entry.is_int64()) {
      fields.fail_type("prompt", "token ids", entry);
      return false;
    }
    if (entry.get_int64() < 0 || entry.get_int64() >= limits.n_vocab) {
      fields.fail("prompt", fmt::format("token id {} is not in the vocabulary (0 to {})", entry.get_int64(),
                                        limits.n_vocab - 1));
      return false;
    }
    ids.push_back(static_cast<int32_t>(entry.get_int64()));
  }
  return true;
}

void read_prompts(FieldReader& fields, const ApiLimits& limits, std::vector<PromptInput>& prompts) {
  const json::value* prompt = fields.any("prompt");
  if (prompt == nullptr) return fields.fail("prompt", "is required", "missing_required_parameter");
  if (const json::string* text = prompt->if_string()) {
    prompts.emplace_back(std::string(*text));
    return;
  }
  const json::array* list = prompt->if_array();
  if (list == nullptr) {
    return fields.fail_type(
        "prompt", "a string, an array of strings, an array of token ids or an array of those", *prompt);
  }
  if (list->empty()) return fields.fail("prompt", "the array is empty");
  if (list->front().is_number()) {
    std::vector<int32_t> ids;
    if (read_ids(fields, *list, limits, ids)) prompts.emplace_back(std::move(ids));
    return;
  }
  if (list->size() > static_cast<size_t>(limits.max_prompts)) {
    return fields.fail(
        "prompt", fmt::format("expected at most {} prompts, found {}", limits.max_prompts, list->size()));
  }
  for (const json::value& entry : *list) {
    if (entry.kind() != list->front().kind())
      return fields.fail("prompt", "the array mixes different kinds of prompts");
    if (const json::string* text = entry.if_string()) {
      prompts.emplace_back(std::string(*text));
    } else if (const json::array* inner = entry.if_array(); inner != nullptr && !inner->empty()) {
      std::vector<int32_t> ids;
      if (!read_ids(fields, *inner, limits, ids)) return;
      prompts.emplace_back(std::move(ids));
    } else {
      return fields.fail_type("prompt", "strings or non-empty arrays of token ids", entry);
    }
  }
}

}  // namespace

ApiResult<ChatCompletionRequest> parse_chat_request(std::string_view body, const ApiLimits& limits) {
  auto object = parse_json_body(body, limits.max_json_depth);
  if (!object) return std::unexpected(object.error());
  FieldReader fields(*object);
  ChatCompletionRequest request;
  read_common(fields, limits, request.options);
  read_messages(fields, limits, request.messages);
  read_chat_logprobs(fields, request.options.sampling);
  read_chat_max_tokens(fields, request.options);
  request.tools = read_tools(fields);
  if (request.tools.offered() && request.options.response_format.kind != ResponseFormat::Kind::kText) {
    fields.fail("response_format", "cannot be combined with tools unless tool_choice is \"none\"");
  }
  fields.finish();
  if (fields.failed()) return std::unexpected(fields.error());
  return request;
}

ApiResult<CompletionRequest> parse_completion_request(std::string_view body, const ApiLimits& limits) {
  auto object = parse_json_body(body, limits.max_json_depth);
  if (!object) return std::unexpected(object.error());
  FieldReader fields(*object);
  CompletionRequest request;
  read_common(fields, limits, request.options);
  read_prompts(fields, limits, request.prompts);
  // OpenAI's default: 16 tokens.
  request.options.max_tokens = fields.integer("max_tokens", 1, kMaxTokens).value_or(16);
  if (const auto top = fields.integer("logprobs", 0, 20)) {
    request.options.sampling.logprobs = true;
    request.options.sampling.top_logprobs = static_cast<int>(*top);
  }
  fields.refuse("tools", "[]", "is for chat completions");
  fields.refuse("tool_choice", "\"none\"", "is for chat completions");
  fields.refuse("echo", "false", "is not supported");
  fields.refuse("suffix", "\"\"", "is not supported");
  fields.refuse("best_of", "1", "is not supported; use n");
  fields.finish();
  const auto sequences = static_cast<int64_t>(request.prompts.size()) * request.options.n;
  if (sequences > limits.max_sequences) {
    fields.fail("n",
                fmt::format("{} prompts with n {} are {} sequences; at most {} are allowed in one request",
                            request.prompts.size(), request.options.n, sequences, limits.max_sequences));
  }
  if (fields.failed()) return std::unexpected(fields.error());
  return request;
}

SamplingParams sampling_of_choice(const SamplingParams& sampling, int index) {
  SamplingParams own = sampling;
  if (own.seed) *own.seed += static_cast<uint64_t>(index);
  return own;
}

}  // namespace assay
