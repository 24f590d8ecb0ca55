#include "telemetry/span.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <limits>

namespace assay {
namespace {

namespace json = boost::json;

Span example() {
  Span span;
  span.trace = parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")->trace;
  span.id = parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")->span;
  span.name = "chat toy";
  span.kind = SpanKind::kServer;
  span.start_unix_nanoseconds = 1544712660000000001;
  span.end_unix_nanoseconds = 1544712661000000002;
  return span;
}

// What the protocol's own JSON example (opentelemetry-proto, examples/trace.json) looks like, field by field.
TEST(OtlpJson, whole_request_is_as_the_protocol_writes_it) {
  Span span = example();
  span.attributes = {{"my.span.attr", "some value"}};
  const std::vector<SpanAttribute> resource = {{"service.name", "my.service"}};
  EXPECT_EQ(json::parse(to_otlp_json(resource, {"my.library", "1.0.0"}, {&span, 1})), json::parse(R"({
    "resourceSpans": [{
      "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "my.service"}}]},
      "scopeSpans": [{
        "scope": {"name": "my.library", "version": "1.0.0"},
        "spans": [{
          "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "00f067aa0ba902b7", "flags": 257,
          "name": "chat toy", "kind": 2,
          "startTimeUnixNano": "1544712660000000001", "endTimeUnixNano": "1544712661000000002",
          "attributes": [{"key": "my.span.attr", "value": {"stringValue": "some value"}}],
          "status": {}
        }]
      }]
    }]
  })"));
}

json::object only_span(const Span& span) {
  return json::parse(to_otlp_json({}, {}, {&span, 1}))
      .at("resourceSpans")
      .at(0)
      .at("scopeSpans")
      .at(0)
      .at("spans")
      .at(0)
      .as_object();
}

TEST(OtlpJson, every_kind_of_value_has_its_form) {
  Span span = example();
  span.attributes = {{"int", std::numeric_limits<int64_t>::min()}, {"double", 0.5},       {"bool", true},
                     {"list", std::vector<std::string>{"a", "b"}}, {"nan", std::nan("")}, {"inf", -HUGE_VAL}};
  EXPECT_EQ(only_span(span).at("attributes"), json::parse(R"([
    {"key": "int", "value": {"intValue": "-9223372036854775808"}},
    {"key": "double", "value": {"doubleValue": 0.5}},
    {"key": "bool", "value": {"boolValue": true}},
    {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "a"}, {"stringValue": "b"}]}}},
    {"key": "nan", "value": {"doubleValue": "NaN"}},
    {"key": "inf", "value": {"doubleValue": "-Infinity"}}])"));
}

TEST(OtlpJson, parent_state_and_error_are_said) {
  Span span = example();
  span.parent = parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")->span;
  span.parent_is_remote = true;
  span.trace_state = "a=b";
  span.status = SpanStatus::kError;
  span.status_message = "broke";
  const json::object object = only_span(span);
  EXPECT_EQ(object.at("parentSpanId"), "b7ad6b7169203331");
  EXPECT_EQ(object.at("traceState"), "a=b");
  EXPECT_EQ(object.at("flags"), 0x301);
  EXPECT_EQ(object.at("status"), json::parse(R"({"code": 2, "message": "broke"})"));
}

TEST(OtlpJson, bytes_that_are_not_utf8_do_not_break_the_document) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
      {"a\xFFz", "a?z"},
      {"\xC3", "?"},
      {"\xC0\xAF", "??"},
      {"\xED\xA0\x80", "???"},
      {"\xF4\x90\x80\x80", "????"},
      {"\xE2\x82", "??"},
      {std::string("\0", 1), std::string("\0", 1)}};
  for (const auto& [bytes, text] : cases) {
    Span span = example();
    span.name = bytes;
    EXPECT_EQ(only_span(span).at("name"), json::string(text)) << bytes;
  }
}

}  // namespace
}  // namespace assay
