// Hostile and odd requests over real sockets: each gets its status and error code, and the server goes on.
#include <gtest/gtest.h>

#include "serve/served.h"

namespace assay {
namespace {

using testing::FakeEngine;
using testing::json_of;
using testing::RawResponse;
using testing::RawSocket;
using testing::Served;
using testing::text_at;

const std::string kChat = "/v1/chat/completions";
const std::string kText = "/v1/completions";

struct Case {
  const char* name;
  std::string bytes;
  int status;
  std::string code;
  std::string param;
};

std::string chat(const std::string& more) {
  return Served::post_text(kChat, Served::chat_body(more));
}
std::string text(const std::string& more) {
  return Served::post_text(kText, Served::completion_body(more));
}
std::string chat_with(const std::string& messages) {
  return Served::post_text(kChat, R"({"model":"org/toy","messages":)" + messages + "}");
}
std::string with_type(const std::string& header, const std::string& body) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{}", kChat, header,
                     body.size(), body);
}
std::string chunked(const std::string& tail) {
  return "POST " + kChat +
         " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
         tail;
}

std::vector<Case> hostile_cases() {
  const std::string good = Served::chat_body();
  const std::string long_text(300, 'x');
  const std::string ids_out = R"({"model":"org/toy","prompt":[1,257]})";
  const std::string deep_ok = std::string(30, '[') + std::string(30, ']');
  const std::string deep = std::string(33, '[') + std::string(33, ']');
  return {
      // routes and methods
      {"unknown path", "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", 404, "unknown_url", "null"},
      {"unknown route", Served::post_text("/v1/nothing", good), 404, "unknown_url", "null"},
      {"no version", Served::post_text("/chat/completions", good), 404, "unknown_url", "null"},
      {"trailing slash", Served::post_text(kChat + "/", good), 404, "unknown_url", "null"},
      {"get a post route", "GET " + kChat + " HTTP/1.1\r\nHost: x\r\n\r\n", 405, "method_not_allowed",
       "null"},
      {"post a get route", Served::post_text("/v1/models", good), 405, "method_not_allowed", "null"},
      {"delete a model", "DELETE /v1/models/org/toy HTTP/1.1\r\nHost: x\r\n\r\n", 405, "method_not_allowed",
       "null"},
      {"unknown model page", "GET /v1/models/other HTTP/1.1\r\nHost: x\r\n\r\n", 404, "model_not_found",
       "model"},
      {"bad escape", "GET /v1/models/%GG HTTP/1.1\r\nHost: x\r\n\r\n", 400, "bad_request", "null"},
      // message framing
      {"garbage", "\x16\x03\x01 garbage\r\n\r\n", 400, "bad_request", "null"},
      {"no host", "POST " + kChat + " HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400, "bad_request", "null"},
      {"oversized header", "GET /health HTTP/1.1\r\nHost: x\r\nA: " + std::string(40000, 'a') + "\r\n\r\n",
       431, "headers_too_large", "null"},
      {"oversized target", "GET /" + std::string(40000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 431,
       "headers_too_large", "null"},
      {"announced too big", with_type("", "").replace(with_type("", "").find(": 0"), 3, ": 100001"), 413,
       "request_too_large", "null"},
      {"too big", Served::post_text(kChat, std::string(100001, ' ')), 413, "request_too_large", "null"},
      {"too big in chunks", chunked("186a1\r\n"), 413, "request_too_large", "null"},
      {"bad chunk", chunked("xyz\r\n"), 400, "bad_request", "null"},
      {"length and chunks", chunked("").replace(chunked("").find("Host"), 0, "Content-Length: 4\r\n"), 400,
       "bad_request", "null"},
      {"gzip transfer", "POST " + kChat + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501,
       "unsupported_transfer_encoding", "null"},
      {"strange expectation", with_type("Expect: more\r\n", good), 417, "unsupported_expectation", "null"},
      // content
      {"form type", with_type("Content-Type: application/x-www-form-urlencoded\r\n", good), 415,
       "unsupported_content_type", "Content-Type"},
      {"text type", with_type("Content-Type: text/plain\r\n", good), 415, "unsupported_content_type",
       "Content-Type"},
      {"jsonp type", with_type("Content-Type: application/jsonp\r\n", good), 415, "unsupported_content_type",
       "Content-Type"},
      {"gzip content", with_type("Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "\x1f\x8b"),
       415, "unsupported_content_encoding", "Content-Encoding"},
      {"empty body", Served::post_text(kChat, ""), 400, "invalid_json", "null"},
      {"half a body", Served::post_text(kChat, good.substr(0, good.size() - 1)), 400, "invalid_json", "null"},
      {"two bodies", Served::post_text(kChat, good + good), 400, "invalid_json", "null"},
      {"array", Served::post_text(kChat, "[" + good + "]"), 400, "invalid_json", "null"},
      {"not a number", chat(R"("temperature":NaN)"), 400, "invalid_json", "null"},
      {"invalid UTF-8", chat_with("[{\"role\":\"user\",\"content\":\"\xC3\x28\"}]"), 400, "invalid_json",
       "null"},
      {"overlong UTF-8", chat_with("[{\"role\":\"user\",\"content\":\"\xC0\x80\"}]"), 400, "invalid_json",
       "null"},
      {"lone surrogate", chat_with(R"([{"role":"user","content":"\ud83d"}])"), 400, "invalid_json", "null"},
      {"too deep", chat("\"stop\":" + deep), 400, "json_too_deep", "null"},
      {"far too deep", Served::post_text(kChat, std::string(90000, '[')), 400, "json_too_deep", "null"},
      {"deep but legal", chat("\"stop\":" + deep_ok), 400, "invalid_type", "stop"},
      // parameters
      {"no model", Served::post_text(kChat, R"({"messages":[{"role":"user","content":"x"}]})"), 400,
       "missing_required_parameter", "model"},
      {"unknown model",
       Served::post_text(kChat, R"({"model":"gpt-4","messages":[{"role":"user","content":"x"}]})"), 404,
       "model_not_found", "model"},
      {"unknown model for text", Served::post_text(kText, R"({"model":"gpt-4","prompt":"x"})"), 404,
       "model_not_found", "model"},
      {"no messages", Served::post_text(kChat, R"({"model":"org/toy"})"), 400, "missing_required_parameter",
       "messages"},
      {"no prompt", Served::post_text(kText, R"({"model":"org/toy"})"), 400, "missing_required_parameter",
       "prompt"},
      {"empty messages", chat_with("[]"), 400, "invalid_value", "messages"},
      {"bad role", chat_with(R"([{"role":"wizard","content":"x"}])"), 400, "invalid_value",
       "messages[0].role"},
      {"image",
       chat_with(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}])"), 400,
       "unsupported_content", "messages[0].content[0].type"},
      {"template refuses", chat_with(R"([{"role":"assistant","content":"x"}])"), 400,
       "refused_by_chat_template", "messages"},
      {"negative max_tokens", chat(R"("max_tokens":-5)"), 400, "invalid_value", "max_tokens"},
      {"zero max_tokens", chat(R"("max_tokens":0)"), 400, "invalid_value", "max_tokens"},
      {"huge max_tokens", chat(R"("max_tokens":1e300)"), 400, "invalid_value", "max_tokens"},
      {"max_tokens beyond context", chat(R"("max_tokens":1000000)"), 400, "context_length_exceeded",
       "messages"},
      {"max_tokens fills context by one too many", text(R"("max_tokens":199)"), 400,
       "context_length_exceeded", "prompt"},
      {"prompt beyond context", chat_with(R"([{"role":"user","content":")" + long_text + "\"}]"), 400,
       "context_length_exceeded", "messages"},
      {"text beyond context",
       Served::post_text(kText, R"({"model":"org/toy","prompt":")" + long_text + "\"}"), 400,
       "context_length_exceeded", "prompt"},
      {"text that need not be tokenised to be refused",
       Served::post_text(kText, R"({"model":"org/toy","prompt":")" + std::string(50000, 'x') + "\"}"), 400,
       "context_length_exceeded", "prompt"},
      {"one of two prompts beyond context",
       Served::post_text(kText, R"({"model":"org/toy","prompt":["a",")" + long_text + "\"]}"), 400,
       "context_length_exceeded", "prompt"},
      {"prompt without tokens", Served::post_text(kText, R"({"model":"org/toy","prompt":""})"), 400,
       "invalid_value", "prompt"},
      {"token id out of range", Served::post_text(kText, ids_out), 400, "invalid_value", "prompt"},
      {"negative n", chat(R"("n":-1)"), 400, "invalid_value", "n"},
      {"huge n", chat(R"("n":1000000)"), 400, "invalid_value", "n"},
      {"negative temperature", chat(R"("temperature":-1)"), 400, "invalid_value", "temperature"},
      {"infinite temperature", chat(R"("temperature":1e400)"), 400, "invalid_value", "temperature"},
      {"text temperature", chat(R"("temperature":"warm")"), 400, "invalid_type", "temperature"},
      {"top_p above one", chat(R"("top_p":1.5)"), 400, "invalid_value", "top_p"},
      {"too many stops",
       chat(R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])"), 400,
       "invalid_value", "stop"},
      {"logit_bias beyond vocabulary", chat(R"("logit_bias":{"257":1})"), 400, "invalid_value", "logit_bias"},
      {"top_logprobs alone", chat(R"("top_logprobs":2)"), 400, "invalid_value", "top_logprobs"},
      {"stream as text", chat(R"("stream":"true")"), 400, "invalid_type", "stream"},
      {"stream_options alone", chat(R"("stream_options":{})"), 400, "invalid_value", "stream_options"},
      {"tools", chat(R"("tools":[{"type":"function","function":{"name":"f"}}])"), 400, "tools_not_supported",
       "tools"},
      {"tools for text", text(R"("tools":[{}])"), 400, "unsupported_parameter", "tools"},
      {"unknown format", chat(R"("response_format":{"type":"yaml"})"), 400, "invalid_value",
       "response_format.type"},
      {"bad schema",
       chat(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":7}}})"),
       400, "invalid_schema", "response_format.json_schema.schema"},
      {"unsupported keyword",
       chat(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"not":{}}}})"),
       400, "unsupported_schema", "response_format.json_schema.schema"},
      {"regex bomb",
       chat(
           R"x("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"string","pattern":"(a|b)*a(a|b){30}"}}})x"),
       400, "schema_too_complex", "response_format.json_schema.schema"},
      {"echo", text(R"("echo":1)"), 400, "invalid_type", "echo"},
      {"nothing to answer", text(R"("max_tokens":0)"), 400, "invalid_value", "max_tokens"},
      {"misspelt", chat(R"("max_token":5)"), 400, "unknown_parameter", "max_token"},
      {"unknown with hostile name", chat("\"<script>\\u0000\\n\":5"), 400, "unknown_parameter",
       std::string("<script>\0\n", 10)},
  };
}

TEST(ApiErrors, hostile_requests_get_exact_errors_and_the_server_goes_on) {
  ServeConfig config;
  config.http.limits.body_bytes = 100000;
  Served served({}, config);
  const std::vector<Case> cases = hostile_cases();
  EXPECT_GE(cases.size(), 60U);
  for (const Case& c : cases) {
    const RawResponse response = served.ask(c.bytes);
    EXPECT_EQ(response.status, c.status) << c.name << ": " << response.body;
    EXPECT_TRUE(response.complete) << c.name;
    EXPECT_TRUE(response.headers.contains("x-request-id")) << c.name;
    EXPECT_EQ(response.headers.at("content-type"), "application/json") << c.name;
    const auto body = json_of(response);
    EXPECT_EQ(text_at(body, "/error/code"), c.code) << c.name << ": " << response.body;
    EXPECT_EQ(text_at(body, "/error/param"), c.param) << c.name << ": " << response.body;
    EXPECT_GT(text_at(body, "/error/message").size(), 10U) << c.name;
    EXPECT_EQ(text_at(body, "/error/type"), c.status >= 500 ? "server_error" : "invalid_request_error")
        << c.name;
  }
  EXPECT_EQ(served.engine->submitted().size(), 0U);
  EXPECT_EQ(served.chat().status, 200);
}

TEST(ApiErrors, wrong_method_names_the_allowed_one) {
  Served served;
  EXPECT_EQ(served.get(kChat).headers["allow"], "POST");
  EXPECT_EQ(served.post("/health", "{}").headers["allow"], "GET, HEAD");
}

TEST(ApiErrors, all_on_one_connection_when_the_framing_is_sound) {
  Served served;
  RawSocket socket(served.server->port());
  std::string all;
  int sound = 0;
  for (const Case& c : hostile_cases()) {
    if (c.code == "bad_request" || c.status == 413 || c.status == 431 || c.status == 501 || c.status == 417)
      continue;
    if (c.bytes.size() > 20000) continue;
    socket.send(c.bytes);  // pipelined: nothing is read in between
    ++sound;
  }
  socket.send(chat(R"("max_tokens":3)"));
  for (int i = 0; i < sound; ++i) ASSERT_GE(socket.read_response().status, 400) << i;
  const RawResponse last = socket.read_response();
  EXPECT_EQ(last.status, 200);
  EXPECT_EQ(text_at(json_of(last), "/choices/0/message/content"), "Hel");
}

TEST(ApiErrors, full_queue_is_429_with_retry_after) {
  Served served({.max_active = 2});
  served.engine->hold();
  RawSocket first(served.server->port());
  first.send(chat(R"("n":2)"));
  ASSERT_TRUE(testing::eventually([&] { return served.engine->active() == 2; }));
  for (const bool stream : {false, true}) {
    const RawResponse refused = served.chat(stream ? R"("stream":true)" : "");
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(text_at(json_of(refused), "/error/code"), "queue_full");
    EXPECT_EQ(text_at(json_of(refused), "/error/type"), "rate_limit_error");
    EXPECT_EQ(refused.headers.at("retry-after"), "1");
  }
  served.engine->go_on();
  EXPECT_EQ(first.read_response().status, 200);
  EXPECT_EQ(served.chat().status, 200);
}

TEST(ApiErrors, partly_admitted_request_is_withdrawn_whole) {
  Served served({.max_active = 3});
  served.engine->hold();
  EXPECT_EQ(served.chat(R"("n":5)").status, 429);
  EXPECT_TRUE(testing::eventually([&] { return served.engine->active() == 0; }));
  EXPECT_EQ(served.engine->cancelled(), 3U);
  served.engine->go_on();
  EXPECT_EQ(served.chat(R"("n":3)").status, 200);
}

TEST(ApiErrors, engine_error_before_and_during_a_stream) {
  Served served({.error_after_first = "the model made a NaN"});
  const RawResponse whole = served.chat();
  EXPECT_EQ(whole.status, 500);
  EXPECT_EQ(text_at(json_of(whole), "/error/type"), "server_error");
  EXPECT_NE(whole.body.find("NaN"), std::string::npos);
  const RawResponse stream = served.chat(R"("stream":true)");
  EXPECT_EQ(stream.status, 200);
  const auto events = testing::events_of(stream.body);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(text_at(boost::json::parse(events[1]), "/error/code"), "internal_error");
  EXPECT_EQ(events[2], "[DONE]");
}

TEST(ApiErrors, starting_server_is_alive_but_not_ready) {
  Served served({}, {}, false);
  EXPECT_EQ(served.get("/health/live").status, 200);
  EXPECT_EQ(served.get("/health/ready").status, 503);
  EXPECT_EQ(served.get("/health").status, 503);
  const RawResponse refused = served.chat();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(text_at(json_of(refused), "/error/code"), "starting");
  served.server->set_ready();
  EXPECT_EQ(served.get("/health/ready").status, 200);
  EXPECT_EQ(served.chat().status, 200);
}

TEST(ApiErrors, model_without_template_still_completes_text) {
  Served served({}, {}, true, false);
  const RawResponse refused = served.chat();
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(text_at(json_of(refused), "/error/code"), "no_chat_template");
  EXPECT_EQ(served.complete().status, 200);
}

TEST(ApiErrors, slow_request_gets_408_with_an_error_object) {
  ServeConfig config;
  config.http.head_timeout_seconds = 0.1;
  config.http.body_timeout_seconds = 0.1;
  Served served({}, config);
  RawSocket socket(served.server->port());
  socket.send(chat("").substr(0, 150));
  const RawResponse response = socket.read_response();
  EXPECT_EQ(response.status, 408);
  EXPECT_EQ(text_at(json_of(response), "/error/code"), "request_timeout");
}

}  // namespace
}  // namespace assay
