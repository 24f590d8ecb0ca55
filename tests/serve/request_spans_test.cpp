#include "serve/request_spans.h"

#include <gtest/gtest.h>

#include <map>

#include "serve/access_line.h"
#include "serve/served.h"

namespace assay {
namespace {

using testing::text_at;

const ServedIdentity kServed{"org/toy", "weights int8", "127.0.0.1:8080"};

RequestFacts example() {
  RequestFacts facts;
  facts.method = "POST";
  facts.route = "/v1/chat/completions";
  facts.request_id = "req-1";
  facts.client = "[::1]:4711";
  facts.tenant = "acme";
  facts.own = *parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  facts.received_unix_nanoseconds = 1'700'000'000'123'456'789;
  facts.times = {
      .submitted = 0.001, .started = 0.002, .first_token = 0.005, .last_token = 0.25, .ended = 0.251};
  facts.generation = {.operation = "chat",
                      .model = "default",
                      .response_id = "chatcmpl-1",
                      .stream = true,
                      .choices = 2,
                      .max_tokens = 7,
                      .temperature = 0.7,
                      .output_type = "text",
                      .finish_reasons = {"stop", "length"},
                      .prompt_tokens = 11,
                      .cached_tokens = 3,
                      .output_tokens = 13};
  facts.status = 200;
  facts.outcome = Outcome::kLength;
  return facts;
}

std::map<std::string, AttributeValue> attributes_of(const Span& span) {
  std::map<std::string, AttributeValue> map;
  for (const SpanAttribute& attribute : span.attributes) {
    EXPECT_TRUE(map.emplace(attribute.key, attribute.value).second) << attribute.key << " twice";
  }
  return map;
}

TEST(RequestSpans, phases_are_children_and_follow_one_another) {
  const auto spans = to_spans(example(), kServed);
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_EQ(spans[0].name, "chat default");
  EXPECT_EQ(spans[0].kind, SpanKind::kServer);
  EXPECT_FALSE(spans[0].parent.is_set());
  EXPECT_EQ(spans[0].start_unix_nanoseconds, 1'700'000'000'123'456'789);
  EXPECT_EQ(spans[0].end_unix_nanoseconds, 1'700'000'000'374'456'789);
  const std::vector<std::string> names = {"queue", "prefill", "decode"};
  for (size_t i = 1; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].name, names[i - 1]);
    EXPECT_EQ(spans[i].parent, spans[0].id);
    EXPECT_EQ(spans[i].trace, spans[0].trace);
    EXPECT_NE(spans[i].id, spans[0].id);
    EXPECT_GE(spans[i].start_unix_nanoseconds, spans[i - 1].start_unix_nanoseconds);
    EXPECT_LE(spans[i].end_unix_nanoseconds, spans[0].end_unix_nanoseconds);
    if (i > 1) {
      EXPECT_EQ(spans[i].start_unix_nanoseconds, spans[i - 1].end_unix_nanoseconds);
    }
  }
  EXPECT_EQ(spans[1].start_unix_nanoseconds, 1'700'000'000'124'456'789);
  EXPECT_EQ(spans[3].end_unix_nanoseconds, 1'700'000'000'373'456'789);
}

TEST(RequestSpans, attributes_follow_the_conventions) {
  const auto attributes = attributes_of(to_spans(example(), kServed)[0]);
  const std::map<std::string, AttributeValue> expected = {
      {"gen_ai.operation.name", "chat"},
      {"gen_ai.provider.name", "assay"},
      {"gen_ai.request.model", "default"},
      {"gen_ai.request.max_tokens", int64_t{7}},
      {"gen_ai.request.temperature", 0.7},
      {"gen_ai.request.choice.count", int64_t{2}},
      {"gen_ai.request.stream", true},
      {"gen_ai.output.type", "text"},
      {"gen_ai.response.model", "org/toy"},
      {"gen_ai.response.id", "chatcmpl-1"},
      {"gen_ai.response.finish_reasons", std::vector<std::string>{"stop", "length"}},
      {"gen_ai.usage.input_tokens", int64_t{11}},
      {"gen_ai.usage.cache_read.input_tokens", int64_t{3}},
      {"gen_ai.usage.output_tokens", int64_t{13}},
      {"gen_ai.response.time_to_first_chunk", 0.005},
      {"server.address", "127.0.0.1"},
      {"server.port", int64_t{8080}},
      {"client.address", "::1"},
      {"client.port", int64_t{4711}},
      {"http.request.method", "POST"},
      {"http.route", "/v1/chat/completions"},
      {"http.response.status_code", int64_t{200}},
      {"assay.request_id", "req-1"},
      {"assay.tenant", "acme"},
      {"assay.outcome", "length"},
      {"assay.precision", "weights int8"}};
  EXPECT_EQ(attributes, expected);
}

TEST(RequestSpans, phases_not_reached_have_no_span) {
  RequestFacts facts = example();
  facts.times = {.ended = 0.001};
  EXPECT_EQ(to_spans(facts, kServed).size(), 1U) << "refused before it was submitted";
  facts.times = {.submitted = 0.001, .ended = 0.5};
  const auto spans = to_spans(facts, kServed);
  ASSERT_EQ(spans.size(), 2U) << "left while it waited";
  EXPECT_EQ(spans[1].name, "queue");
  EXPECT_EQ(spans[1].end_unix_nanoseconds, spans[0].end_unix_nanoseconds);
}

TEST(RequestSpans, only_the_servers_faults_are_errors_but_every_failure_has_a_type) {
  struct Case {
    int status;
    std::string code;
    Outcome outcome;
    SpanStatus span_status;
    std::string error_type;
  };
  for (const Case& row : {Case{200, "", Outcome::kStop, SpanStatus::kUnset, "(absent)"},
                          Case{400, "invalid_value", Outcome::kInvalid, SpanStatus::kUnset, "invalid_value"},
                          Case{429, "queue_full", Outcome::kRefusedQueue, SpanStatus::kUnset, "queue_full"},
                          Case{499, "", Outcome::kCancelled, SpanStatus::kUnset, "client_left"},
                          Case{503, "starting", Outcome::kUnavailable, SpanStatus::kError, "starting"},
                          Case{500, "", Outcome::kError, SpanStatus::kError, "500"},
                          Case{200, "", Outcome::kError, SpanStatus::kError, "generation_failed"}}) {
    RequestFacts facts = example();
    facts.status = row.status;
    facts.error_code = row.code;
    facts.outcome = row.outcome;
    const Span root = to_spans(facts, kServed)[0];
    EXPECT_EQ(root.status, row.span_status) << row.status << row.code;
    const auto attributes = attributes_of(root);
    const auto found = attributes.find("error.type");
    EXPECT_EQ(found == attributes.end() ? "(absent)" : std::get<std::string>(found->second), row.error_type);
  }
}

TEST(RequestFacts, outcome_follows_the_code_then_the_status) {
  EXPECT_EQ(outcome_of(429, "queue_full"), Outcome::kRefusedQueue);
  EXPECT_EQ(outcome_of(503, "grammars_full"), Outcome::kRefusedQueue);
  EXPECT_EQ(outcome_of(429, "deadline_unreachable"), Outcome::kRefusedDeadline);
  EXPECT_EQ(outcome_of(503, "deadline_unreachable"), Outcome::kRefusedDeadline);
  EXPECT_EQ(outcome_of(429, "rate_limit_exceeded"), Outcome::kRefusedLimit);
  EXPECT_EQ(outcome_of(401, "invalid_api_key"), Outcome::kRefusedKey);
  EXPECT_EQ(outcome_of(503, "shutting_down"), Outcome::kUnavailable);
  EXPECT_EQ(outcome_of(200, ""), Outcome::kDone);
  EXPECT_EQ(outcome_of(404, "model_not_found"), Outcome::kInvalid);
  EXPECT_EQ(outcome_of(499, ""), Outcome::kCancelled);
  EXPECT_EQ(outcome_of(429, "something_new"), Outcome::kRefusedLimit);
  EXPECT_EQ(outcome_of(500, "internal_error"), Outcome::kError);
}

TEST(AccessLine, whole_generation_is_one_object) {
  EXPECT_EQ(boost::json::parse(to_access_line(example())), boost::json::parse(R"({
    "time": "2023-11-14T22:13:20.123456Z", "request_id": "req-1",
    "trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331",
    "client": "[::1]:4711", "tenant": "acme", "method": "POST", "route": "/v1/chat/completions",
    "status": 200, "outcome": "length", "seconds": 0.251, "body_bytes": 0, "model": "default", "stream": true,
    "response_id": "chatcmpl-1", "prompt_tokens": 11, "cached_tokens": 3, "output_tokens": 13,
    "queue_seconds": 0.001, "ttft_seconds": 0.005, "prefill_seconds": 0.003, "decode_seconds": 0.245})"));
}

TEST(AccessLine, unrouted_request_has_no_route_and_no_generation) {
  RequestFacts facts;
  facts.method = "GET";
  facts.tenant.clear();
  facts.request_id = "a\"b";
  facts.status = 404;
  facts.outcome = Outcome::kInvalid;
  EXPECT_EQ(boost::json::parse(to_access_line(facts)), boost::json::parse(R"({
    "time": "1970-01-01T00:00:00.000000Z", "request_id": "a\"b", "method": "GET", "route": null, "status": 404,
    "outcome": "invalid", "seconds": 0.0, "body_bytes": 0})"));
}

}  // namespace
}  // namespace assay
