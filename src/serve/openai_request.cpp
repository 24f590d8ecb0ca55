#include "serve/openai_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "serve/chat_messages.h"
#include "serve/field_reader.h"
#include "serve/json_body.h"

namespace assay {
namespace {

namespace json = boost::json;

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

}  // namespace

ApiResult<ChatCompletionRequest> parse_chat_request(std::string_view body, const ApiLimits& limits) {
  auto object = parse_json_body(body, limits.max_json_depth);
  if (!object) return std::unexpected(object.error());
  FieldReader fields(*object);
  ChatCompletionRequest request;
  read_common(fields, limits, request.options);
  request.messages = read_messages(fields, limits.max_messages);
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
  request.prompts = read_prompts(fields, "prompt", {limits.n_vocab, limits.max_prompts});
  // OpenAI's default: 16 tokens.
  request.options.max_tokens = fields.integer("max_tokens", 0, kMaxTokens).value_or(16);
  request.parse_special = fields.boolean("parse_special").value_or(true);
  request.echo = fields.boolean("echo").value_or(false);
  if (request.options.max_tokens == 0 && !request.echo)
    fields.fail("max_tokens", "0 is allowed with echo alone; there is nothing to answer otherwise");
  if (const auto top = fields.integer("logprobs", 0, 20)) {
    request.options.sampling.logprobs = true;
    request.options.sampling.top_logprobs = static_cast<int>(*top);
  }
  fields.refuse("tools", "[]", "is for chat completions");
  fields.refuse("tool_choice", "\"none\"", "is for chat completions");
  fields.refuse("suffix", "\"\"", "is not supported: this server continues prompts, it does not fill gaps");
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
