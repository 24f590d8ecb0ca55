#include "serve/caller.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "serve/base64.h"

namespace assay {
namespace {

// The credentials behind `scheme` in an Authorization header.
std::optional<std::string_view> credentials(std::string_view header, std::string_view scheme) {
  if (header.size() <= scheme.size() || !equals_ignoring_case(header.substr(0, scheme.size()), scheme) ||
      header[scheme.size()] != ' ')
    return std::nullopt;
  header.remove_prefix(scheme.size());
  while (header.starts_with(' ')) header.remove_prefix(1);
  return header;
}

bool is_beyond_forms(const HttpRequest& request) {
  if (request.method == "GET" || request.method == "HEAD") return true;
  const auto type = request.headers.find("Content-Type");
  constexpr std::string_view kJson = "application/json";
  return type && equals_ignoring_case(type->substr(0, kJson.size()), kJson);
}

std::optional<std::string> key_of(const HttpRequest& request) {
  const auto header = request.headers.find("Authorization");
  if (!header || request.headers.count("Authorization") != 1) return std::nullopt;
  if (const auto key = credentials(*header, "Bearer")) return std::string(*key);
  const auto basic = credentials(*header, "Basic");
  if (!basic || !is_beyond_forms(request)) return std::nullopt;
  const auto decoded = decode_base64(*basic);
  const size_t colon = decoded ? decoded->find(':') : std::string::npos;
  return colon == std::string::npos ? std::nullopt : std::optional(decoded->substr(colon + 1));
}

ApiError missing_key(const HttpRequest& request, bool given) {
  ApiError error{.status = 401,
                 .message = given ? "the API key is not known here"
                                  : "this server asks for an API key: send Authorization: Bearer KEY",
                 .type = "authentication_error",
                 .code = "invalid_api_key"};
  error.headers.add("WWW-Authenticate", R"(Bearer realm="assay")");
  // Lets a browser that opens a page ask for the key.
  const auto accepts = request.headers.find("Accept");
  if (request.method == "GET" && accepts && accepts->find("text/html") != std::string_view::npos)
    error.headers.add("WWW-Authenticate", R"(Basic realm="assay: any name, the API key as password")");
  return error;
}

// As Go writes durations, which is what OpenAI sends: "1m30s", "1.5s", "20ms".
std::string reset_text(double seconds) {
  if (seconds <= 0) return "0s";
  if (seconds < 1) return fmt::format("{}ms", std::max(1.0, std::ceil(seconds * 1000)));
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  std::string text;
  if (whole >= 3600) text += fmt::format("{}h", whole / 3600);
  if (whole >= 60) text += fmt::format("{}m", whole / 60 % 60);
  return text + fmt::format("{}s", whole % 60);
}

std::string describe(const TenantRefusal& refusal) {
  static constexpr std::array<std::string_view, 3> kLimits = {
      "at most {} requests at one time", "{} requests per minute", "{} tokens per minute"};
  static_assert(kLimits.size() == static_cast<size_t>(TenantRefusal::Limit::kCount));
  const std::string bound = fmt::format("{:.0f}", refusal.bound);
  return fmt::format(fmt::runtime(kLimits.at(static_cast<size_t>(refusal.limit))), bound);
}

}  // namespace

ApiResult<Caller> identify_caller(const HttpRequest& request, const TenantDirectory& tenants) {
  const std::optional<std::string> key = key_of(request);
  const bool asks = tenants.asks_for_keys();
  if (asks && !key) return std::unexpected(missing_key(request, false));
  std::shared_ptr<Tenant> tenant = tenants.find(key.value_or(""));
  if (tenant == nullptr) return std::unexpected(missing_key(request, true));
  return Caller{std::move(tenant), asks};
}

ApiResult<std::shared_ptr<Tenant::Admission>> admit(const Caller& caller, int64_t prompt_tokens) {
  auto admission = caller.tenant->admit(prompt_tokens);
  if (admission) return std::make_shared<Tenant::Admission>(std::move(*admission));
  const TenantRefusal& refusal = admission.error();
  const double seconds = std::clamp(std::ceil(refusal.retry_seconds), 1.0, 1e9);
  return std::unexpected(
      ApiError{.status = 429,
               .message = fmt::format("rate limit of tenant \"{}\" reached: {}; try again in {:.0f} s",
                                      caller.tenant->name(), describe(refusal), seconds),
               .type = "rate_limit_error",
               .code = "rate_limit_exceeded",
               .retry_after_seconds = static_cast<int>(seconds),
               .headers = rate_limit_headers(*caller.tenant)});
}

Headers rate_limit_headers(const Tenant& tenant) {
  Headers headers;
  const auto add = [&](std::string_view kind, const std::optional<RateState>& rate) {
    if (!rate) return;
    headers.add(fmt::format("x-ratelimit-limit-{}", kind), fmt::format("{:.0f}", rate->limit));
    headers.add(fmt::format("x-ratelimit-remaining-{}", kind),
                fmt::format("{:.0f}", std::floor(rate->remaining)));
    headers.add(fmt::format("x-ratelimit-reset-{}", kind), reset_text(rate->reset_seconds));
  };
  const TenantRates rates = tenant.rates();
  add("requests", rates.requests);
  add("tokens", rates.tokens);
  return headers;
}

RequestClass share_of(const Caller& caller, std::optional<int> priority) {
  const TenantPolicy policy = caller.tenant->policy();
  RequestClass share{.tenant = policy.name, .weight = policy.weight, .priority = policy.priority};
  if (priority) share.priority = caller.has_key ? std::max(policy.priority, *priority) : *priority;
  if (policy.refuse_late) share.ttft_bound_seconds = policy.ttft_bound_seconds;
  return share;
}

}  // namespace assay
