#include "serve/status_routes.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/build_info.h"
#include "serve/openai_response.h"

namespace assay {
namespace {

namespace json = boost::json;

ModelListing listing(const ServerState& state) {
  return {state.model.name, state.created, state.model.engine->max_context(), state.model.precision};
}

void list_models(ServerState& state, const HttpRequest&, const ResponderPtr& responder) {
  const ModelListing only = listing(state);
  responder->respond(json_response(200, model_list({&only, 1})));
}

void show_model(ServerState& state, const HttpRequest& request, const ResponderPtr& responder) {
  const std::string_view id = request.path_parameter("id");
  responder->respond(state.serves(id) ? json_response(200, model_object(listing(state)))
                                      : to_response(state.unknown_model(id)));
}

void show_health(ServerState& state, const HttpRequest&, const ResponderPtr& responder) {
  const std::string_view state_name = state.draining ? "draining" : state.ready ? "ok" : "starting";
  const int status = state.ready && !state.draining ? 200 : 503;
  responder->respond(json_response(status, json::serialize(json::object{{"status", json::string(state_name)},
                                                                        {"model", state.model.name}})));
}

void show_live(ServerState&, const HttpRequest&, const ResponderPtr& responder) {
  responder->respond(json_response(200, R"({"status":"live"})"));
}

void show_ready(ServerState& state, const HttpRequest& request, const ResponderPtr& responder) {
  show_health(state, request, responder);
}

void show_metrics(ServerState& state, const HttpRequest&, const ResponderPtr& responder) {
  responder->respond(text_response(200, state.metrics.to_text(), kMetricsContentType));
}

void show_version(ServerState&, const HttpRequest&, const ResponderPtr& responder) {
  const BuildInfo build = build_info();
  responder->respond(
      json_response(200, json::serialize(json::object{{"version", json::string(build.version)},
                                                      {"commit", json::string(build.commit)},
                                                      {"compiler", json::string(build.compiler)},
                                                      {"build_type", json::string(build.build_type)}})));
}

}  // namespace

std::vector<HttpServer::Route> status_routes(ServerState& state) {
  return {make_route(state, "GET", "/v1/models", list_models),
          make_route(state, "GET", "/v1/models/{id...}", show_model),
          make_open_route(state, "GET", "/health", show_health),
          make_open_route(state, "GET", "/health/live", show_live),
          make_open_route(state, "GET", "/health/ready", show_ready),
          make_route(state, "GET", "/metrics", show_metrics),
          make_route(state, "GET", "/version", show_version)};
}

}  // namespace assay
