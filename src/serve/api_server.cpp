#include "serve/api_server.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "serve/api_error.h"
#include "serve/embedding_routes.h"
#include "serve/generation_routes.h"
#include "serve/live_routes.h"
#include "serve/server_state.h"
#include "serve/status_routes.h"
#include "serve/token_routes.h"
#include "serve/usage_routes.h"

namespace assay {
namespace {

constexpr double kFlushSeconds = 5;  // for clients to take what was generated before the deadline

void append(std::vector<HttpServer::Route>& routes, std::vector<HttpServer::Route> more) {
  std::ranges::move(more, std::back_inserter(routes));
}

std::vector<HttpServer::Route> all_routes(ServerState& state) {
  std::vector<HttpServer::Route> routes;
  append(routes, status_routes(state));
  append(routes, generation_routes(state));
  append(routes, embedding_routes(state));
  append(routes, token_routes(state));
  append(routes, usage_routes(state));
  append(routes, live_routes(state));
  return routes;
}

class OpenAiServer final : public ApiServer {
 public:
  OpenAiServer(ServeConfig config, ServedModel model) : state_(std::move(config), std::move(model)) {}

  ~OpenAiServer() override {
    // First the sockets: that cancels what runs and ends the callbacks into the state.
    http_.reset();
    // Then the sequences, whose sinks use the metrics.
    state_.model.engine->drain(0);
  }

  Result<void> open();
  void set_ready() override { state_.ready = true; }
  uint16_t port() const override { return http_->port(); }
  std::string address() const override { return http_->address(); }
  MetricRegistry& metrics() override { return state_.metrics; }
  Result<void> reload_tls() override { return http_->reload_tls(); }
  void replace_tenants(const TenantTable& table) override { state_.tenants.replace(table); }
  void reopen_logs() override { state_.observer->reopen_access_log(); }
  bool drain(double timeout_seconds) override;

 private:
  ServerState state_;
  std::unique_ptr<HttpServer> http_;
};

Result<void> OpenAiServer::open() {
  ServerConfig http = state_.config.http;
  http.make_error = [](int status, std::string_view code, std::string_view message) {
    return to_response(http_failure(status, code, message));
  };
  http.on_access = [this, chained = state_.config.http.on_access](const AccessRecord& record) {
    state_.serve_metrics.count_request(record);
    state_.observer->count_unrouted(record);
    log_debug("{} {} {} {} {:.3f}s{}", record.request_id, record.method, record.route, record.status,
              record.seconds, record.disconnected ? " client left" : "");
    if (chained) chained(record);
  };
  ASSIGN_OR_RETURN(state_.observer,
                   RequestObserver::open(state_.config.watch, {state_.model.name, state_.model.precision},
                                         state_.serve_metrics, state_.metrics));
  state_.live = LiveState::start(
      {state_.model.name, state_.model.precision, state_.model.engine->max_context(), state_.created},
      *state_.model.engine, state_.serve_metrics);
  ASSIGN_OR_RETURN(http_, HttpServer::start(std::move(http), all_routes(state_)));
  state_.observer->set_address(http_->address());
  return {};
}

bool OpenAiServer::drain(double timeout_seconds) {
  state_.draining = true;
  http_->stop_accepting();
  state_.model.engine->drain(timeout_seconds);
  const bool clean = http_->drain(std::min(timeout_seconds, kFlushSeconds));
  state_.observer->close(std::min(timeout_seconds, kFlushSeconds));
  return clean;
}

}  // namespace

Result<std::unique_ptr<ApiServer>> ApiServer::start(ServeConfig config, ServedModel model) {
  auto server = std::make_unique<OpenAiServer>(std::move(config), std::move(model));
  RETURN_IF_ERROR(server->open());
  return server;
}

}  // namespace assay
