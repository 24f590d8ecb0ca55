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

ApiResult<GenerationSpec> prepare(ServerState& state, ChatCompletionRequest& request) {
  auto shape = shape_of_chat(request, state.model.tool_format, state.grammars);
  if (!shape) return std::unexpected(std::move(shape.error()));
  auto prompt = state.prompts.chat(request, shape->prompt_end);
  if (!prompt) return std::unexpected(std::move(prompt.error()));
  GenerationSpec spec{.identity = identity(state, Endpoint::kChat, request.options)};
  spec.prompts.push_back(std::move(*prompt));
  if (auto refusal = state.prompts.check_lengths(spec.prompts, request.options, "messages"))
    return std::unexpected(std::move(*refusal));
  spec.options = std::move(request.options);
  spec.shape = std::move(*shape);
  return spec;
}

ApiResult<GenerationSpec> prepare(ServerState& state, CompletionRequest& request) {
  auto prompts = state.prompts.inputs(request.prompts, "prompt", {.parse_special = request.parse_special});
  if (!prompts) return std::unexpected(std::move(prompts.error()));
  if (auto refusal = state.prompts.check_lengths(*prompts, request.options, "prompt"))
    return std::unexpected(std::move(*refusal));
  auto shape = shape_of_completion(request, state.grammars);
  if (!shape) return std::unexpected(std::move(shape.error()));
  GenerationSpec spec{.identity = identity(state, Endpoint::kCompletion, request.options)};
  for (const PromptInput& input : request.prompts) {
    if (request.echo) spec.echo.push_back(text_of(input, state.model.engine->tokenizer()));
  }
  spec.prompts = std::move(*prompts);
  spec.options = std::move(request.options);
  spec.shape = std::move(*shape);
  return spec;
}

// Prepares a parsed request and starts it: at once, or, where a grammar is needed, after a worker has made
// it.
template <class Request>
void go(ServerState& state, Request request, const Caller& caller, const ResponderPtr& responder) {
  if (!state.serves(request.options.model))
    return responder->respond(to_response(state.unknown_model(request.options.model)));
  const auto finish = [&state, caller, responder](ApiResult<GenerationSpec> spec) {
    if (!spec) return responder->respond(to_response(spec.error()));
    start(state, std::move(*spec), caller, responder);
  };
  if (!needs_grammar(request)) return finish(prepare(state, request));
  const auto kept = std::make_shared<Request>(std::move(request));
  const bool queued = state.grammar_workers.submit([&state, kept, finish, responder] {
    if (responder->disconnected()) return;
    const auto spec = std::make_shared<ApiResult<GenerationSpec>>(prepare(state, *kept));
    responder->post([finish, spec] { finish(std::move(*spec)); });
  });
  if (queued) return;
  responder->respond(
      to_response({.status = 503,
                   .message = "more schemas wait to be compiled than the server queues; try again",
                   .type = "server_error",
                   .code = "grammars_full",
                   .retry_after_seconds = 1}));
}

void complete_chat(ServerState& state, const HttpRequest& request, const ResponderPtr& responder,
                   const Caller& caller) {
  if (const auto refusal = refuse(state, request)) return responder->respond(to_response(*refusal));
  auto parsed = parse_chat_request(request.body, state.config.limits);
  if (!parsed) return responder->respond(to_response(parsed.error()));
  go(state, std::move(*parsed), caller, responder);
}

void complete_text(ServerState& state, const HttpRequest& request, const ResponderPtr& responder,
                   const Caller& caller) {
  if (const auto refusal = refuse(state, request)) return responder->respond(to_response(*refusal));
  auto parsed = parse_completion_request(request.body, state.config.limits);
  if (!parsed) return responder->respond(to_response(parsed.error()));
  go(state, std::move(*parsed), caller, responder);
}

}  // namespace

std::vector<HttpServer::Route> generation_routes(ServerState& state) {
  return {make_route(state, "POST", "/v1/chat/completions", complete_chat),
          make_route(state, "POST", "/v1/completions", complete_text)};
}

}  // namespace assay
