#include "serve/generation_routes.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "base/build_info.h"
#include "serve/answer_shape.h"
#include "serve/generation.h"
#include "serve/openai_response.h"
#include "serve/utf8_text.h"

namespace assay {
namespace {

std::optional<ApiError> refuse(const ServerState& state, const HttpRequest& request) {
  if (auto closed = state.closed()) return closed;
  return refuse_body(request);
}

ResponseIdentity identity(const ServerState& state, Endpoint endpoint, const GenerationOptions& options) {
  const std::string unique = make_request_id().substr(4);
  return {.endpoint = endpoint,
          .id = (endpoint == Endpoint::kChat ? "chatcmpl-" : "cmpl-") + unique,
          .created = std::time(nullptr),
          .model = state.model.name,
          .fingerprint = fmt::format("assay {}, {}", build_info().version, state.model.precision),
          .chunk_usage_null = options.include_usage};
}

// What an echoed prompt reads like.
std::string text_of(const PromptInput& input, const Tokenizer& tokenizer) {
  if (const auto* text = std::get_if<std::string>(&input)) return *text;
  return replace_invalid_utf8(tokenizer.decode(std::get<std::vector<int32_t>>(input), false));
}

// The last refusal: the tenant's limits.
void start(ServerState& state, GenerationSpec spec, const Caller& caller, const ResponderPtr& responder) {
  int64_t prompt_tokens = 0;
  for (const auto& prompt : spec.prompts) prompt_tokens += static_cast<int64_t>(prompt.size());
  auto admission = admit(caller, prompt_tokens);
  if (!admission) return responder->respond(to_response(admission.error()));
  spec.admission = std::move(*admission);
  spec.share = share_of(caller, spec.options.priority);
  spec.headers = rate_limit_headers(*caller.tenant);
  Generation::start(*state.model.engine, state.serve_metrics, std::move(spec), responder);
}

void complete_chat(ServerState& state, const HttpRequest& request, const ResponderPtr& responder,
                   const Caller& caller) {
  if (const auto refusal = refuse(state, request)) return responder->respond(to_response(*refusal));
  auto parsed = parse_chat_request(request.body, state.config.limits);
  if (!parsed) return responder->respond(to_response(parsed.error()));
  GenerationOptions& options = parsed->options;
  if (!state.serves(options.model))
    return responder->respond(to_response(state.unknown_model(options.model)));
  auto shape = shape_of_chat(*parsed, state.model.tool_format, state.grammars);
  if (!shape) return responder->respond(to_response(shape.error()));
  auto prompt = state.prompts.chat(*parsed, shape->prompt_end);
  if (!prompt) return responder->respond(to_response(prompt.error()));
  std::vector<std::vector<int32_t>> prompts;
  prompts.push_back(std::move(*prompt));
  if (const auto refusal = state.prompts.check_lengths(prompts, options, "messages")) {
    return responder->respond(to_response(*refusal));
  }
  ResponseIdentity own = identity(state, Endpoint::kChat, options);
  start(state, {std::move(own), std::move(options), std::move(prompts), std::move(*shape)}, caller,
        responder);
}

void complete_text(ServerState& state, const HttpRequest& request, const ResponderPtr& responder,
                   const Caller& caller) {
  if (const auto refusal = refuse(state, request)) return responder->respond(to_response(*refusal));
  auto parsed = parse_completion_request(request.body, state.config.limits);
  if (!parsed) return responder->respond(to_response(parsed.error()));
  GenerationOptions& options = parsed->options;
  if (!state.serves(options.model))
    return responder->respond(to_response(state.unknown_model(options.model)));
  auto prompts = state.prompts.inputs(parsed->prompts, "prompt", {.parse_special = parsed->parse_special});
  if (!prompts) return responder->respond(to_response(prompts.error()));
  if (const auto refusal = state.prompts.check_lengths(*prompts, options, "prompt")) {
    return responder->respond(to_response(*refusal));
  }
  auto shape = shape_of_completion(*parsed, state.grammars);
  if (!shape) return responder->respond(to_response(shape.error()));
  std::vector<std::string> echo;
  for (const PromptInput& input : parsed->prompts) {
    if (parsed->echo) echo.push_back(text_of(input, state.model.engine->tokenizer()));
  }
  ResponseIdentity own = identity(state, Endpoint::kCompletion, options);
  start(state, {std::move(own), std::move(options), std::move(*prompts), std::move(*shape), std::move(echo)},
        caller, responder);
}

}  // namespace

std::vector<HttpServer::Route> generation_routes(ServerState& state) {
  return {make_route(state, "POST", "/v1/chat/completions", complete_chat),
          make_route(state, "POST", "/v1/completions", complete_text)};
}

}  // namespace assay
