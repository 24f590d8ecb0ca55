#include "serve/request_spans.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

namespace assay {
namespace {

int64_t to_unix(const RequestFacts& facts, double seconds) {
  return facts.received_unix_nanoseconds + std::llround(seconds * 1e9);
}

// "host:port" apart; IPv6 hosts lose their brackets.
std::pair<std::string, std::optional<int64_t>> split_address(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return {std::string(address), std::nullopt};
  std::string_view host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  int64_t port = 0;
  const std::string_view digits = address.substr(colon + 1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) {
    return {std::string(address), std::nullopt};
  }
  return {std::string(host), port};
}

class Attributes {
 public:
  void add(std::string_view key, AttributeValue value) {
    list_.emplace_back(std::string(key), std::move(value));
  }
  void add_text(std::string_view key, const std::string& value) {
    if (!value.empty()) add(key, value);
  }
  template <class T>
  void add_some(std::string_view key, const std::optional<T>& value) {
    if (value) add(key, *value);
  }
  void add_address(std::string_view who, std::string_view address) {
    if (address.empty()) return;
    auto [host, port] = split_address(address);
    add(std::string(who) + ".address", std::move(host));
    add_some(std::string(who) + ".port", port);
  }
  std::vector<SpanAttribute> take() { return std::move(list_); }

 private:
  std::vector<SpanAttribute> list_;
};

std::vector<SpanAttribute> attributes_of(const RequestFacts& facts, const ServedIdentity& served) {
  const GenerationFacts& generation = facts.generation;
  Attributes out;
  out.add("gen_ai.operation.name", generation.operation);
  out.add("gen_ai.provider.name", std::string("assay"));
  out.add_text("gen_ai.request.model", generation.model);
  out.add_some("gen_ai.request.max_tokens", generation.max_tokens);
  out.add_some("gen_ai.request.temperature", generation.temperature);
  out.add_some("gen_ai.request.top_p", generation.top_p);
  out.add_some("gen_ai.request.seed", generation.seed);
  if (generation.choices != 1) out.add("gen_ai.request.choice.count", int64_t{generation.choices});
  if (generation.stream) out.add("gen_ai.request.stream", true);
  out.add_text("gen_ai.output.type", generation.output_type);
  if (!generation.response_id.empty()) {
    out.add("gen_ai.response.model", served.model);
    out.add("gen_ai.response.id", generation.response_id);
  }
  if (!generation.finish_reasons.empty()) {
    out.add("gen_ai.response.finish_reasons", generation.finish_reasons);
  }
  if (generation.prompt_tokens > 0) {
    out.add("gen_ai.usage.input_tokens", generation.prompt_tokens);
    out.add("gen_ai.usage.cache_read.input_tokens", generation.cached_tokens);
    out.add("gen_ai.usage.output_tokens", generation.output_tokens);
  }
  if (generation.stream) out.add_some("gen_ai.response.time_to_first_chunk", facts.times.first_token);
  out.add_address("server", served.address);
  out.add_address("client", facts.client);
  out.add("http.request.method", facts.method);
  out.add("http.route", facts.route);
  if (facts.status != 499) out.add("http.response.status_code", int64_t{facts.status});
  out.add("assay.request_id", facts.request_id);
  out.add("assay.tenant", facts.tenant);
  out.add("assay.outcome", std::string(name(facts.outcome)));
  out.add("assay.precision", served.precision);
  if (facts.outcome == Outcome::kError || facts.status >= 400) {
    out.add("error.type", !facts.error_code.empty() ? facts.error_code
                          : facts.status == 499     ? std::string("client_left")
                          : facts.status >= 400     ? std::to_string(facts.status)
                                                    : std::string("generation_failed"));
  }
  return out.take();
}

Span phase(const Span& root, const RequestFacts& facts, std::string_view name, double start, double end) {
  Span span;
  span.trace = root.trace;
  span.id = make_span_id();
  span.parent = root.id;
  span.trace_state = root.trace_state;
  span.name = name;
  span.start_unix_nanoseconds = to_unix(facts, start);
  span.end_unix_nanoseconds = to_unix(facts, std::max(start, end));
  return span;
}

}  // namespace

std::vector<Span> to_spans(const RequestFacts& facts, const ServedIdentity& served) {
  std::vector<Span> spans;
  Span& root = spans.emplace_back();
  const GenerationFacts& generation = facts.generation;
  root.trace = facts.own.trace;
  root.id = facts.own.span;
  root.parent = facts.caller;
  root.parent_is_remote = facts.caller.is_set();
  root.trace_state = facts.trace_state;
  root.name = generation.model.empty() ? generation.operation : generation.operation + " " + generation.model;
  root.kind = SpanKind::kServer;
  root.start_unix_nanoseconds = to_unix(facts, 0);
  root.end_unix_nanoseconds = to_unix(facts, facts.times.ended);
  root.attributes = attributes_of(facts, served);
  // A server's span is in error only when the server is at fault (HTTP conventions).
  if (facts.outcome == Outcome::kError || (facts.status >= 500 && facts.status < 600)) {
    root.status = SpanStatus::kError;
  }
  const RequestTimes times = facts.times;
  if (!times.submitted) return spans;
  const Span parent = root;  // the vector grows
  const double started = times.started.value_or(times.ended);
  spans.push_back(phase(parent, facts, "queue", *times.submitted, started));
  if (!times.started) return spans;
  spans.push_back(phase(parent, facts, "prefill", started, times.first_token.value_or(times.ended)));
  if (!times.first_token) return spans;
  spans.push_back(phase(parent, facts, "decode", *times.first_token, times.last_token.value_or(times.ended)));
  return spans;
}

}  // namespace assay
