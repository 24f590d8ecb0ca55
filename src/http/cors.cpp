#include "http/cors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "http/url.h"

namespace assay {
namespace {

// What a page may send besides the headers that are always allowed. The last group is what OpenAI's
// JavaScript client adds to every request.
constexpr std::string_view kAllowedHeaders =
    "Authorization, Content-Type, X-Request-Id, traceparent, tracestate, OpenAI-Organization, "
    "OpenAI-Project, "
    "X-Stainless-Arch, X-Stainless-Lang, X-Stainless-OS, X-Stainless-Package-Version, "
    "X-Stainless-Retry-Count, "
    "X-Stainless-Runtime, X-Stainless-Runtime-Version, X-Stainless-Timeout, X-Stainless-Helper-Method";
constexpr std::string_view kAllowedMethods = "GET, HEAD, POST";
constexpr std::string_view kExposedHeaders = "X-Request-Id, Retry-After";
constexpr std::string_view kMaxAgeSeconds = "600";

std::optional<std::string> canonical_origin(std::string_view text) {
  if (text == "null") return std::string(text);
  const auto url = parse_url(text);
  if (!url || url->target != "/" || text.ends_with('/')) return std::nullopt;
  std::string host = url->host_header();
  std::transform(host.begin(), host.end(), host.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return fmt::format("{}://{}", url->https ? "https" : "http", host);
}

bool is_own_origin(std::string_view origin, const HttpRequest& request, bool secure) {
  const auto host = request.headers.find("Host");
  if (!host) return false;
  // A proxy may have taken TLS off, so https from the same host is the server's own as well.
  for (const char* scheme : {"http", "https"}) {
    if (secure && std::string_view(scheme) == "http") continue;
    const auto own = canonical_origin(fmt::format("{}://{}", scheme, *host));
    if (own && *own == origin) return true;
  }
  return false;
}

HttpResponse permit(std::string_view origin) {
  HttpResponse response{.status = 204, .headers = {}, .body = {}};
  response.headers.add("Access-Control-Allow-Origin", origin);
  response.headers.add("Access-Control-Allow-Methods", kAllowedMethods);
  response.headers.add("Access-Control-Allow-Headers", kAllowedHeaders);
  response.headers.add("Access-Control-Max-Age", kMaxAgeSeconds);
  return response;
}

}  // namespace

Result<CorsPolicy> check_cors_policy(const CorsPolicy& policy) {
  CorsPolicy checked;
  for (const std::string& origin : policy.origins) {
    if (origin == "*") {
      checked.origins.push_back(origin);
      continue;
    }
    auto canonical = canonical_origin(origin);
    if (!canonical) {
      return fail(ErrorCode::kInvalidArgument, "CORS origin",
                  "expected scheme://host[:port] without a path, \"null\" or \"*\", found '{}'", origin);
    }
    checked.origins.push_back(std::move(*canonical));
  }
  return checked;
}

CorsVerdict judge_origin(const CorsPolicy& policy, const HttpRequest& request, bool secure) {
  CorsVerdict verdict;
  const bool any = std::ranges::find(policy.origins, "*") != policy.origins.end();
  // Caches must not give one origin's answer to another.
  if (policy.enabled() && !any) verdict.headers.add("Vary", "Origin");
  const auto origin = request.headers.find("Origin");
  if (!origin) return verdict;
  const std::string seen = canonical_origin(*origin).value_or(std::string(*origin));
  const bool allowed = any || std::ranges::find(policy.origins, seen) != policy.origins.end();
  const bool preflight =
      request.method == "OPTIONS" && request.headers.find("Access-Control-Request-Method").has_value();
  if (!allowed) {
    const bool harmless = request.method == "GET" || request.method == "HEAD";
    const bool asks = preflight && policy.enabled();
    verdict.refused =
        (asks || (!harmless && request.method != "OPTIONS")) && !is_own_origin(seen, request, secure);
    return verdict;
  }
  const std::string_view answer = any ? std::string_view("*") : *origin;
  if (preflight) {
    verdict.preflight = permit(answer);
    return verdict;
  }
  verdict.headers.add("Access-Control-Allow-Origin", answer);
  verdict.headers.add("Access-Control-Expose-Headers", kExposedHeaders);
  return verdict;
}

}  // namespace assay
