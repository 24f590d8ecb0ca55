#include "serve/embedding_routes.h"

#include <utility>

#include "serve/embedding_job.h"
#include "serve/embedding_request.h"

namespace assay {
namespace {

void embed(ServerState& state, const HttpRequest& request, const ResponderPtr& responder,
           const Caller& caller) {
  const auto refuse = [&](const ApiError& error) { responder->respond(to_response(error)); };
  if (const auto closed = state.closed()) return refuse(*closed);
  if (const auto refusal = refuse_body(request)) return refuse(*refusal);
  auto parsed = parse_embedding_request(request.body, state.config.limits, state.model.n_embedding);
  if (!parsed) return refuse(parsed.error());
  if (!state.serves(parsed->model)) return refuse(state.unknown_model(parsed->model));
  auto prompts = state.prompts.inputs(parsed->inputs, "input");
  if (!prompts) return refuse(prompts.error());
  if (const auto refusal = state.prompts.check_lengths(*prompts, {}, "input")) return refuse(*refusal);
  int64_t prompt_tokens = 0;
  for (const auto& prompt : *prompts) prompt_tokens += std::ssize(prompt);
  auto admission = admit(caller, prompt_tokens);
  if (!admission) return refuse(admission.error());
  responder->watch().describe({.model = parsed->model, .prompt_tokens = prompt_tokens});
  EmbeddingJob::start(*state.model.engine,
                      {.model = state.model.name,
                       .prompts = std::move(*prompts),
                       .pooling = parsed->pooling,
                       .base64 = parsed->base64,
                       .share = share_of(caller, parsed->priority),
                       .admission = std::move(*admission),
                       .headers = rate_limit_headers(*caller.tenant)},
                      responder);
}

}  // namespace

std::vector<HttpServer::Route> embedding_routes(ServerState& state) {
  return {make_route(state, "POST", "/v1/embeddings", embed)};
}

}  // namespace assay
