#include "serve/live_routes.h"

#include <algorithm>
#include <charconv>

#include "serve/web_assets.h"

namespace assay {
namespace {

// Nothing from elsewhere, no inline scripts; who embeds the page in a frame could have clicks made for him.
constexpr std::string_view kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// Whether a list such as "gzip, deflate;q=0.5" names gzip and does not rule it out.
bool takes_gzip(const Headers& headers) {
  const auto accepted = headers.find("Accept-Encoding");
  if (!accepted) return false;
  const size_t at = accepted->find("gzip");
  if (at == std::string_view::npos) return false;
  const std::string_view rest = accepted->substr(at, accepted->find(',', at) - at);
  return rest.find("q=0") == std::string_view::npos || rest.find("q=0.") != std::string_view::npos;
}

void send_asset(const WebAsset& asset, const HttpRequest& request, const ResponderPtr& responder) {
  const bool packed = takes_gzip(request.headers);
  const std::string etag = '"' + std::string(asset.etag) + (packed ? "-gz\"" : "\"");
  HttpResponse response;
  const auto known = request.headers.find("If-None-Match");
  if (known && known->find(etag) != std::string_view::npos) {
    response.status = 304;
  } else {
    response.body = packed ? asset.gzip : asset.plain;
    response.headers.add("Content-Type", asset.content_type);
    if (packed) response.headers.add("Content-Encoding", "gzip");
  }
  response.headers.add("ETag", etag);
  response.headers.add("Vary", "Accept-Encoding");
  response.headers.add("Cache-Control", "no-cache");  // ask again, 304 is cheap: a new build must show
  response.headers.add("Content-Security-Policy", kContentSecurityPolicy);
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.headers.add("Referrer-Policy", "no-referrer");
  responder->respond(std::move(response));
}

void show_page(ServerState&, const HttpRequest& request, const ResponderPtr& responder) {
  send_asset(web_assets().front(), request, responder);
}

void show_asset(ServerState&, const HttpRequest& request, const ResponderPtr& responder) {
  const auto assets = web_assets();
  const auto found = std::ranges::find(assets, request.path_parameter("file"), &WebAsset::name);
  if (found == assets.end())
    return responder->respond(to_response(http_failure(404, "unknown_url", "the page has no such file")));
  send_asset(*found, request, responder);
}

void show_state(ServerState& state, const HttpRequest& request, const ResponderPtr& responder) {
  int64_t since = -1;
  constexpr std::string_view kSince = "since=";
  if (request.query.starts_with(kSince)) {
    const std::string_view digits = std::string_view(request.query).substr(kSince.size());
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), since);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) {
      return responder->respond(to_response(ApiError{.status = 400,
                                                     .message = "since: expected the number of a sample",
                                                     .param = "since",
                                                     .code = "invalid_value"}));
    }
  }
  const std::string_view status = state.draining ? "draining" : state.ready ? "ok" : "starting";
  HttpResponse response = json_response(200, state.live->to_json(since, status));
  response.headers.add("Cache-Control", "no-store");
  responder->respond(std::move(response));
}

}  // namespace

std::vector<HttpServer::Route> live_routes(ServerState& state) {
  return {make_open_route(state, "GET", "/", show_page),
          make_open_route(state, "GET", "/web/{file}", show_asset),
          make_route(state, "GET", "/debug/state", show_state)};
}

}  // namespace assay
