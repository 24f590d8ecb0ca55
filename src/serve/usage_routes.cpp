#include "serve/usage_routes.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace assay {
namespace {

namespace json = boost::json;

json::value limit_or_null(double limit) {
  return limit > 0 ? json::value(limit) : json::value(nullptr);
}

json::object usage_object(const Tenant& tenant, int64_t since) {
  const TenantPolicy policy = tenant.policy();
  const TenantUsage usage = tenant.usage();
  json::object limits{
      {"requests_in_flight", policy.in_flight_limit > 0 ? json::value(policy.in_flight_limit) : nullptr},
      {"requests_per_minute", limit_or_null(policy.requests_per_minute)},
      {"tokens_per_minute", limit_or_null(policy.tokens_per_minute)},
      {"ttft_bound_seconds", limit_or_null(policy.ttft_bound_seconds.value_or(0))}};
  return {{"object", "usage"},
          {"tenant", tenant.name()},
          {"since", since},
          {"requests_in_flight", usage.in_flight},
          {"requests", usage.requests_total},
          {"requests_refused", usage.refused_total},
          {"prompt_tokens", usage.prompt_tokens_total},
          {"cached_prompt_tokens", usage.cached_prompt_tokens_total},
          {"completion_tokens", usage.completion_tokens_total},
          {"weight", policy.weight},
          {"priority", policy.priority},
          {"limits", std::move(limits)}};
}

void show_usage(ServerState& state, const HttpRequest& request, const ResponderPtr& responder,
                const Caller& caller) {
  if (request.query.empty())
    return responder->respond(
        json_response(200, json::serialize(usage_object(*caller.tenant, state.created))));
  if (request.query != "tenants=all") {
    return responder->respond(to_response({.status = 400,
                                           .message = "the only query that /v1/usage knows is tenants=all",
                                           .param = "tenants",
                                           .code = "invalid_value"}));
  }
  if (caller.has_key && !caller.tenant->policy().admin) {
    return responder->respond(to_response({.status = 403,
                                           .message = "this API key may see the usage of its own tenant only",
                                           .type = "permission_error",
                                           .code = "admin_only"}));
  }
  json::array data;
  for (const auto& tenant : state.tenants.all()) data.push_back(usage_object(*tenant, state.created));
  responder->respond(
      json_response(200, json::serialize(json::object{{"object", "list"}, {"data", std::move(data)}})));
}

}  // namespace

std::vector<HttpServer::Route> usage_routes(ServerState& state) {
  return {make_route(state, "GET", "/v1/usage", show_usage)};
}

}  // namespace assay
