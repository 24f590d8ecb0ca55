// Who a span belongs to: W3C Trace Context ids and the headers that carry them between services.
// Source: W3C Recommendation "Trace Context" (level 1), sections 3.2 and 3.3.
// Thread safety: plain values; make_*() may be called from any thread. Failure: what is malformed counts as
// absent, as the recommendation asks.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

template <size_t kBytes>
struct RandomId {
  std::array<uint8_t, kBytes> bytes{};  // all zero: none

  bool is_set() const;
  std::string hex() const;  // lower case
  auto operator<=>(const RandomId&) const = default;
};
using TraceId = RandomId<16>;
using SpanId = RandomId<8>;

struct TraceContext {
  TraceId trace;
  SpanId span;  // of the caller, when it came in a header
  bool sampled = false;
};

// The value of a `traceparent` header. Versions above 00 are read as far as 00 defines them.
std::optional<TraceContext> parse_traceparent(std::string_view header);
std::string format_traceparent(const TraceContext& context);

// A `tracestate` header is passed on unread; false for what no tracer may pass on (over 512 characters, or
// any that is not printable ASCII).
bool is_valid_tracestate(std::string_view header);

// Never all zero.
TraceId make_trace_id();
SpanId make_span_id();

// Whether a trace is among the `rate` (0 to 1) of all that are kept; the same on every service, because it
// depends on the id alone (its last 7 bytes are random, as level 2 of the recommendation demands).
bool is_sampled(const TraceId& trace, double rate);

}  // namespace assay
