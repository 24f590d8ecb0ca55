// A finished span, and many of them as the body of an OTLP/HTTP JSON export.
// Source: OpenTelemetry Protocol specification 1.x, "JSON Protobuf Encoding" (ids in hexadecimal, 64-bit
// integers as decimal strings, enumerations as numbers, lowerCamelCase names).
// Thread safety: plain values, pure functions. Failure: none; bytes that are not UTF-8 become '?'.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "telemetry/trace_context.h"

namespace assay {

using AttributeValue = std::variant<std::string, int64_t, double, bool, std::vector<std::string>>;

struct SpanAttribute {
  std::string key;
  AttributeValue value;
};

enum class SpanKind { kInternal, kServer, kClient, kCount };
enum class SpanStatus { kUnset, kOk, kError, kCount };

struct Span {
  TraceId trace;
  SpanId id;
  SpanId parent;  // not set: the root of its trace
  bool parent_is_remote = false;
  std::string trace_state;  // as it came
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  int64_t start_unix_nanoseconds = 0;
  int64_t end_unix_nanoseconds = 0;
  std::vector<SpanAttribute> attributes;
  SpanStatus status = SpanStatus::kUnset;
  std::string status_message;  // of kError
};

struct InstrumentationScope {
  std::string name;
  std::string version;
};

// An ExportTraceServiceRequest. `resource` says who exports (service.name, ...).
std::string to_otlp_json(std::span<const SpanAttribute> resource, const InstrumentationScope& scope,
                         std::span<const Span> spans);

}  // namespace assay
