#include "serve/server_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <utility>

namespace assay {
namespace {

ServeConfig with_vocabulary(ServeConfig config, const Engine& engine) {
  config.limits.n_vocab = engine.tokenizer().vocab_size();
  return config;
}

bool is_json_type(const HttpRequest& request) {
  const auto type = request.headers.find("Content-Type");
  if (!type) return true;
  std::string_view media = type->substr(0, type->find(';'));
  while (!media.empty() && (media.back() == ' ' || media.back() == '\t')) media.remove_suffix(1);
  return equals_ignoring_case(media, "application/json");
}

}  // namespace

ServerState::ServerState(ServeConfig settings, ServedModel served)
    : config(with_vocabulary(std::move(settings), *served.engine)),
      model(std::move(served)),
      serve_metrics(metrics),
      grammars(model.engine->tokenizer()),
      tenants(config.tenants),
      prompts(model),
      created(std::time(nullptr)) {
  serve_metrics.describe(model.name, model.precision);
  metrics.on_collect([this] { serve_metrics.collect(model.engine->stats()); });
}

bool ServerState::serves(std::string_view name) const {
  return name == model.name || std::ranges::find(model.aliases, name) != model.aliases.end();
}

ApiError ServerState::unknown_model(std::string_view name) const {
  return {.status = 404,
          .message = fmt::format("the model '{}' does not exist here; this server has '{}'",
                                 name.substr(0, 200), model.name),
          .param = "model",
          .code = "model_not_found"};
}

std::optional<ApiError> ServerState::closed() const {
  if (draining) return engine_failure({ErrorCode::kUnavailable, "", ""});
  if (ready) return std::nullopt;
  return ApiError{.status = 503,
                  .message = "the server is starting; ask /health/ready",
                  .type = "server_error",
                  .code = "starting",
                  .retry_after_seconds = 1};
}

std::optional<ApiError> refuse_body(const HttpRequest& request) {
  if (const auto encoding = request.headers.find("Content-Encoding"); encoding && *encoding != "identity") {
    return ApiError{.status = 415,
                    .message = fmt::format("Content-Encoding '{}' is not supported", encoding->substr(0, 40)),
                    .param = "Content-Encoding",
                    .code = "unsupported_content_encoding"};
  }
  if (is_json_type(request)) return std::nullopt;
  return ApiError{.status = 415,
                  .message = fmt::format("expected Content-Type application/json, found '{}'",
                                         request.headers.find("Content-Type")->substr(0, 80)),
                  .param = "Content-Type",
                  .code = "unsupported_content_type"};
}

namespace {

// A route whose requests are observed.
HttpServer::Route observed_route(ServerState& state, std::string_view method, std::string_view pattern,
                                 std::function<void(const HttpRequest&, const ResponderPtr&)> work) {
  return {std::string(method), std::string(pattern),
          [&state, route = std::string(pattern), work = std::move(work)](
              HttpRequest request, const std::shared_ptr<Responder>& responder) {
            work(request, state.observer->observe(request, route, responder));
          }};
}

std::optional<Caller> identify(ServerState& state, const HttpRequest& request,
                               const ResponderPtr& responder) {
  auto caller = identify_caller(request, state.tenants);
  if (!caller) {
    responder->respond(to_response(caller.error()));
    return std::nullopt;
  }
  responder->watch().set_tenant(caller->tenant->name());
  return std::move(*caller);
}

}  // namespace

HttpServer::Route make_route(ServerState& state, std::string_view method, std::string_view pattern,
                             void (*work)(ServerState&, const HttpRequest&, const ResponderPtr&,
                                          const Caller&)) {
  return observed_route(state, method, pattern,
                        [&state, work](const HttpRequest& request, const ResponderPtr& responder) {
                          if (const auto caller = identify(state, request, responder))
                            work(state, request, responder, *caller);
                        });
}

HttpServer::Route make_route(ServerState& state, std::string_view method, std::string_view pattern,
                             void (*work)(ServerState&, const HttpRequest&, const ResponderPtr&)) {
  return observed_route(state, method, pattern,
                        [&state, work](const HttpRequest& request, const ResponderPtr& responder) {
                          if (identify(state, request, responder)) work(state, request, responder);
                        });
}

HttpServer::Route make_open_route(ServerState& state, std::string_view method, std::string_view pattern,
                                  void (*work)(ServerState&, const HttpRequest&, const ResponderPtr&)) {
  return observed_route(state, method, pattern,
                        [&state, work](const HttpRequest& request, const ResponderPtr& responder) {
                          work(state, request, responder);
                        });
}

}  // namespace assay
