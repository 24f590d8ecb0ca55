#include "telemetry/span.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <type_traits>
#include <utility>

namespace assay {
namespace {

namespace json = boost::json;

constexpr uint32_t kSampledFlag = 0x1;         // W3C's trace flags
constexpr uint32_t kKnowsParentFlag = 0x100;   // SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
constexpr uint32_t kParentRemoteFlag = 0x200;  // SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK

// Length of the well-formed UTF-8 sequence at the front; 0 when there is none.
size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool too_large = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

json::string to_utf8(std::string_view text) {
  json::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) {
      out.push_back('?');
      text.remove_prefix(1);
    } else {
      out.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return out;
}

json::string decimal(int64_t value) {
  return json::string(std::to_string(value));
}

// protobuf's JSON has words for what JSON numbers cannot say.
json::value to_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

json::object to_json(const AttributeValue& value) {
  return std::visit(
      []<class T>(const T& held) -> json::object {
        if constexpr (std::is_same_v<T, std::string>) {
          return {{"stringValue", to_utf8(held)}};
        } else if constexpr (std::is_same_v<T, bool>) {
          return {{"boolValue", held}};
        } else if constexpr (std::is_same_v<T, int64_t>) {
          return {{"intValue", decimal(held)}};
        } else if constexpr (std::is_same_v<T, double>) {
          return {{"doubleValue", to_number(held)}};
        } else {
          json::array values;
          for (const std::string& text : held) values.push_back(json::object{{"stringValue", to_utf8(text)}});
          return {{"arrayValue", json::object{{"values", std::move(values)}}}};
        }
      },
      value);
}

json::array to_json(std::span<const SpanAttribute> attributes) {
  json::array out;
  for (const SpanAttribute& attribute : attributes) {
    out.push_back(json::object{{"key", to_utf8(attribute.key)}, {"value", to_json(attribute.value)}});
  }
  return out;
}

json::object to_json(const Span& span) {
  constexpr std::array kKinds = {1, 2, 3};  // SPAN_KIND_INTERNAL, _SERVER, _CLIENT
  static_assert(kKinds.size() == static_cast<size_t>(SpanKind::kCount));
  json::object out{{"traceId", json::string(span.trace.hex())}, {"spanId", json::string(span.id.hex())}};
  if (span.parent.is_set()) out["parentSpanId"] = json::string(span.parent.hex());
  if (!span.trace_state.empty()) out["traceState"] = to_utf8(span.trace_state);
  out["flags"] = kSampledFlag | kKnowsParentFlag | (span.parent_is_remote ? kParentRemoteFlag : 0);
  out["name"] = to_utf8(span.name);
  out["kind"] = kKinds[static_cast<size_t>(span.kind)];
  out["startTimeUnixNano"] = decimal(span.start_unix_nanoseconds);
  out["endTimeUnixNano"] = decimal(span.end_unix_nanoseconds);
  out["attributes"] = to_json(span.attributes);
  json::object status;
  if (span.status != SpanStatus::kUnset) status["code"] = static_cast<int>(span.status);
  if (!span.status_message.empty()) status["message"] = to_utf8(span.status_message);
  out["status"] = std::move(status);
  return out;
}

}  // namespace

std::string to_otlp_json(std::span<const SpanAttribute> resource, const InstrumentationScope& scope,
                         std::span<const Span> spans) {
  json::array list;
  for (const Span& span : spans) list.push_back(to_json(span));
  const json::object scope_object{{"name", to_utf8(scope.name)}, {"version", to_utf8(scope.version)}};
  json::array scopes{json::object{{"scope", scope_object}, {"spans", std::move(list)}}};
  json::array resources{json::object{{"resource", json::object{{"attributes", to_json(resource)}}},
                                     {"scopeSpans", std::move(scopes)}}};
  return json::serialize(json::object{{"resourceSpans", std::move(resources)}});
}

}  // namespace assay
