#include "serve/access_line.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cmath>

namespace assay {
namespace {

namespace json = boost::json;

// RFC 3339 in UTC, to the microsecond.
std::string to_time(int64_t unix_nanoseconds) {
  constexpr int64_t kSecond = 1'000'000'000;
  const auto seconds = static_cast<std::time_t>(unix_nanoseconds / kSecond);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(seconds), unix_nanoseconds % kSecond / 1000);
}

// To the microsecond: digits beyond are noise.
double rounded(double seconds) {
  return std::round(seconds * 1e6) / 1e6;
}

void add_generation(json::object& line, const GenerationFacts& generation, const RequestTimes& times) {
  if (!generation.model.empty()) {
    line["model"] = generation.model;
    line["stream"] = generation.stream;
  }
  if (!generation.response_id.empty()) line["response_id"] = generation.response_id;
  if (generation.prompt_tokens > 0) {
    line["prompt_tokens"] = generation.prompt_tokens;
    line["cached_tokens"] = generation.cached_tokens;
    line["output_tokens"] = generation.output_tokens;
  }
  if (times.submitted) {
    line["queue_seconds"] = rounded(times.started.value_or(times.ended) - *times.submitted);
  }
  if (times.first_token) line["ttft_seconds"] = rounded(*times.first_token);
  if (times.started && times.first_token) {
    line["prefill_seconds"] = rounded(*times.first_token - *times.started);
  }
  if (times.first_token && times.last_token) {
    line["decode_seconds"] = rounded(*times.last_token - *times.first_token);
  }
}

}  // namespace

std::string to_access_line(const RequestFacts& facts) {
  json::object line;
  line["time"] = to_time(facts.received_unix_nanoseconds);
  line["request_id"] = facts.request_id;
  if (facts.own.trace.is_set()) {
    line["trace_id"] = json::string(facts.own.trace.hex());
    line["span_id"] = json::string(facts.own.span.hex());
  }
  if (!facts.client.empty()) line["client"] = facts.client;
  if (!facts.tenant.empty()) line["tenant"] = facts.tenant;
  line["method"] = facts.method;
  line["route"] = facts.route.empty() ? json::value(nullptr) : json::value(facts.route);
  line["status"] = facts.status;
  line["outcome"] = json::string(name(facts.outcome));
  if (!facts.error_code.empty()) line["error_code"] = facts.error_code;
  line["seconds"] = rounded(facts.times.ended);
  line["body_bytes"] = facts.body_bytes;
  add_generation(line, facts.generation, facts.times);
  return json::serialize(line);
}

}  // namespace assay
