// What the routes of one server share. A group of routes is a function `std::vector<HttpServer::Route>
// NAME_routes(ServerState&)` in a file of its own; api_server.cpp joins the groups.
// Ownership: the server owns the state and ends every handler before it. Thread safety: handlers run on I/O
// threads, several at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/server.h"
#include "serve/api_error.h"
#include "serve/caller.h"
#include "serve/grammar_constraint.h"
#include "serve/grammar_workers.h"
#include "serve/live_state.h"
#include "serve/prompt_encoder.h"
#include "serve/request_observer.h"
#include "serve/serve_metrics.h"
#include "serve/served_model.h"
#include "telemetry/metrics.h"
#include "tenants/tenant_directory.h"

namespace assay {

using ResponderPtr = std::shared_ptr<ObservedResponder>;

struct ServerState {
  ServerState(ServeConfig settings, ServedModel served);

  bool serves(std::string_view name) const;  // the model's name or an alias
  ApiError unknown_model(std::string_view name) const;
  // Why no request is taken at the moment; nullopt: they are.
  std::optional<ApiError> closed() const;

  ServeConfig config;
  const ServedModel model;
  MetricRegistry metrics;
  ServeMetrics serve_metrics;
  std::unique_ptr<RequestObserver> observer;  // opened before the first request, as is the next
  std::unique_ptr<LiveState> live;
  GrammarStore grammars;
  TenantDirectory tenants;
  const PromptEncoder prompts;
  const int64_t created;           // Unix seconds
  GrammarWorkers grammar_workers;  // their jobs use what stands above
  std::atomic<bool> ready{false};
  std::atomic<bool> draining{false};
};

// What must hold before a JSON body is read: its type and encoding. nullopt: it does.
std::optional<ApiError> refuse_body(const HttpRequest& request);

// A route whose handler gets the state. Where the server asks for API keys, the handler is called for
// requests with a known key alone; the others get 401.
HttpServer::Route make_route(ServerState& state, std::string_view method, std::string_view pattern,
                             void (*work)(ServerState&, const HttpRequest&, const ResponderPtr&));
HttpServer::Route make_route(ServerState& state, std::string_view method, std::string_view pattern,
                             void (*work)(ServerState&, const HttpRequest&, const ResponderPtr&,
                                          const Caller&));
// Without a key, for everyone: health.
HttpServer::Route make_open_route(ServerState& state, std::string_view method, std::string_view pattern,
                                  void (*work)(ServerState&, const HttpRequest&, const ResponderPtr&));

}  // namespace assay
