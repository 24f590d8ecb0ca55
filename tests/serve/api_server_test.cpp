#include "serve/api_server.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "serve/served.h"

namespace assay {
namespace {

using testing::events_of;
using testing::eventually;
using testing::json_of;
using testing::RawResponse;
using testing::RawSocket;
using testing::Served;
using testing::text_at;

namespace json = boost::json;

// Content of choice `index` put together from the chunks of a stream.
std::string streamed_text(const std::vector<std::string>& events, int index, const char* field) {
  std::string text;
  for (const std::string& event : events) {
    if (event == "[DONE]") continue;
    const json::value value = json::parse(event);
    if (text_at(value, "/choices/0/index") != std::to_string(index)) continue;
    const std::string piece = text_at(value, std::string("/choices/0/") + field);
    if (piece != "(absent)") text += piece;
  }
  return text;
}

TEST(ApiServer, models_are_listed_and_shown) {
  Served served;
  const auto list = json_of(served.get("/v1/models"));
  EXPECT_EQ(text_at(list, "/object"), "list");
  EXPECT_EQ(text_at(list, "/data/0/id"), "org/toy");
  EXPECT_EQ(text_at(list, "/data/0/object"), "model");
  EXPECT_EQ(text_at(list, "/data/0/max_model_len"), "200");
  EXPECT_EQ(text_at(json_of(served.get("/v1/models/org/toy")), "/id"), "org/toy");
  EXPECT_EQ(text_at(json_of(served.get("/v1/models/org%2Ftoy")), "/precision"), "weights int8:32 (2)");
}

TEST(ApiServer, alias_is_accepted_and_answers_under_the_real_name) {
  Served served;
  const RawResponse response = served.post("/v1/completions", R"({"model":"default","prompt":"x"})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(text_at(json_of(response), "/model"), "org/toy");
}

TEST(ApiServer, version_health_and_metrics_answer) {
  Served served;
  EXPECT_EQ(text_at(json_of(served.get("/version")), "/version"), "0.1.0");
  EXPECT_EQ(text_at(json_of(served.get("/health")), "/status"), "ok");
  ASSERT_EQ(served.chat().status, 200);
  ASSERT_EQ(served.get("/nothing").status, 404);
  const RawResponse response = served.get("/metrics");
  EXPECT_EQ(response.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line :
       {"assay_requests_total{code=\"200\",route=\"/v1/chat/completions\"} 1\n",
        "assay_requests_total{code=\"404\",route=\"none\"} 1\n",
        "assay_time_to_first_token_seconds_count 1\n", "assay_inter_token_latency_seconds_count 12\n",
        "assay_request_seconds_count 1\n", "assay_generated_tokens_total 13\n", "assay_running_requests 0\n",
        "assay_kv_blocks{state=\"free\"} 85\n", "assay_finished_sequences_total{reason=\"stop\"} 1\n",
        "assay_precision_info{model=\"org/toy\",precision=\"weights int8:32 (2)\"} 1\n"}) {
    EXPECT_NE(response.body.find(line), std::string::npos) << line << "in\n" << response.body;
  }
  EXPECT_NE(response.body.find("assay_build_info{"), std::string::npos);
}

TEST(ApiServer, whole_chat_answer_has_openais_shape) {
  Served served;
  const RawResponse response = served.chat();
  ASSERT_EQ(response.status, 200) << response.body;
  const auto body = json_of(response);
  EXPECT_TRUE(text_at(body, "/id").starts_with("chatcmpl-"));
  EXPECT_EQ(text_at(body, "/object"), "chat.completion");
  EXPECT_EQ(text_at(body, "/model"), "org/toy");
  EXPECT_EQ(text_at(body, "/choices/0/message/role"), "assistant");
  EXPECT_EQ(text_at(body, "/choices/0/message/content"), "Hello, world.");
  EXPECT_EQ(text_at(body, "/choices/0/finish_reason"), "stop");
  EXPECT_EQ(text_at(body, "/choices/0/logprobs"), "null");
  // "<user>hi\n<assistant>" is 20 bytes, so 20 tokens; the fake engine says half came from the cache.
  EXPECT_EQ(text_at(body, "/usage/prompt_tokens"), "20");
  EXPECT_EQ(text_at(body, "/usage/completion_tokens"), "13");
  EXPECT_EQ(text_at(body, "/usage/total_tokens"), "33");
  EXPECT_EQ(text_at(body, "/usage/prompt_tokens_details/cached_tokens"), "10");
}

TEST(ApiServer, parameters_reach_the_engine) {
  Served served;
  ASSERT_EQ(served
                .chat(R"("max_tokens":5,"temperature":0.25,"top_k":7,"top_p":0.5,"min_p":0.125,"seed":9,"n":2,
                        "stop":["zz"],"presence_penalty":1,"logit_bias":{"65":-3}})")
                .status,
            400);  // one brace too many: nothing may reach it
  EXPECT_TRUE(served.engine->submitted().empty());
  const RawResponse response = served.chat(
      R"("max_tokens":5,"temperature":0.25,"top_k":7,"top_p":0.5,"min_p":0.125,"seed":9,"n":2,"stop":["zz"],
         "presence_penalty":1,"logit_bias":{"65":-3})");
  ASSERT_EQ(response.status, 200) << response.body;
  const auto submitted = served.engine->submitted();
  ASSERT_EQ(submitted.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const GenerationRequest& request = submitted[i];
    EXPECT_EQ(std::string(request.prompt.begin(), request.prompt.end()), "<user>hi\n<assistant>");
    EXPECT_EQ(request.max_tokens, 5);
    EXPECT_EQ(request.sampling.temperature, 0.25F);
    EXPECT_EQ(request.sampling.top_k, 7);
    EXPECT_EQ(request.sampling.seed, 9 + i);
    EXPECT_EQ(request.stop, std::vector<std::string>{"zz"});
    EXPECT_EQ(request.sampling.logit_bias.at(0).second, -3.0F);
  }
  const auto body = json_of(response);
  EXPECT_EQ(text_at(body, "/choices/1/index"), "1");
  EXPECT_EQ(text_at(body, "/choices/1/message/content"), "Hello");
  EXPECT_EQ(text_at(body, "/choices/1/finish_reason"), "length");
  EXPECT_EQ(text_at(body, "/usage/prompt_tokens"), "20");  // once, not per choice
  EXPECT_EQ(text_at(body, "/usage/completion_tokens"), "10");
}

TEST(ApiServer, longest_request_that_fits_is_accepted) {
  Served served;
  EXPECT_EQ(served.complete(R"("max_tokens":198)").status, 200);
  EXPECT_EQ(served.complete(R"("max_tokens":199)").status, 400);
}

TEST(ApiServer, completion_takes_many_prompts_and_choices) {
  Served served({.reply = "abc"});
  const RawResponse response =
      served.post("/v1/completions", R"({"model":"org/toy","prompt":["x","yy"],"n":2,"max_tokens":2})");
  ASSERT_EQ(response.status, 200) << response.body;
  const auto body = json_of(response);
  EXPECT_TRUE(text_at(body, "/id").starts_with("cmpl-"));
  EXPECT_EQ(text_at(body, "/object"), "text_completion");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(text_at(body, fmt::format("/choices/{}/text", i)), "ab");
  EXPECT_EQ(text_at(body, "/choices/4"), "(absent)");
  EXPECT_EQ(text_at(body, "/usage/prompt_tokens"), "3");
  EXPECT_EQ(text_at(body, "/usage/completion_tokens"), "8");
  const auto ids = served.post("/v1/completions", R"({"model":"org/toy","prompt":[[120],[121,121]]})");
  EXPECT_EQ(text_at(json_of(ids), "/usage/prompt_tokens"), "3");
  EXPECT_EQ(served.engine->submitted().back().prompt, (std::vector<int32_t>{121, 121}));
}

TEST(ApiServer, log_probabilities_in_both_styles) {
  Served served({.reply = "a\xC3\xA9!"});
  const auto chat = json_of(served.chat(R"("logprobs":true,"top_logprobs":2)"));
  EXPECT_EQ(text_at(chat, "/choices/0/message/content"), "a\xC3\xA9!");
  EXPECT_EQ(text_at(chat, "/choices/0/logprobs/content/0/token"), "a");
  EXPECT_EQ(text_at(chat, "/choices/0/logprobs/content/0/bytes"), "[97]");
  EXPECT_EQ(text_at(chat, "/choices/0/logprobs/content/0/logprob"), "-2.5E-1");
  EXPECT_EQ(text_at(chat, "/choices/0/logprobs/content/0/top_logprobs/1/token"), "b");
  EXPECT_EQ(text_at(chat, "/choices/0/logprobs/content/1/token"), "\xEF\xBF\xBD");  // half a character
  EXPECT_EQ(text_at(chat, "/choices/0/logprobs/content/1/bytes"), "[195]");
  EXPECT_EQ(text_at(chat, "/choices/0/logprobs/content/3/token"), "!");
  EXPECT_EQ(text_at(chat, "/choices/0/logprobs/content/4"), "(absent)");
  const auto text = json_of(served.complete(R"("logprobs":1)"));
  EXPECT_EQ(text_at(text, "/choices/0/logprobs/tokens"), R"(["a","bytes:\\xc3","bytes:\\xa9","!"])");
  EXPECT_EQ(text_at(text, "/choices/0/logprobs/text_offset"), "[0,1,2,2]");
  EXPECT_EQ(text_at(text, "/choices/0/logprobs/top_logprobs/0"), R"({"a":-2.5E-1})");
}

TEST(ApiServer, stream_has_role_content_reason_usage_and_end) {
  Served served({.reply = "h\xC3\xA9y"});
  const RawResponse response = served.chat(R"("stream":true,"stream_options":{"include_usage":true})");
  ASSERT_EQ(response.status, 200);
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(response.headers.at("cache-control"), "no-cache");
  const auto events = events_of(response.body);
  ASSERT_EQ(events.size(), 6U) << response.body;  // h, é (one event for two tokens), y, reason, usage, end
  EXPECT_EQ(streamed_text(events, 0, "delta/content"), "h\xC3\xA9y");
  const auto first = json::parse(events[0]);
  EXPECT_EQ(text_at(first, "/object"), "chat.completion.chunk");
  EXPECT_EQ(text_at(first, "/choices/0/delta/role"), "assistant");
  EXPECT_EQ(text_at(first, "/choices/0/finish_reason"), "null");
  EXPECT_EQ(text_at(first, "/usage"), "null");
  EXPECT_EQ(text_at(json::parse(events[1]), "/choices/0/delta/role"), "(absent)");
  EXPECT_EQ(text_at(json::parse(events[1]), "/id"), text_at(first, "/id"));
  EXPECT_EQ(text_at(json::parse(events[3]), "/choices/0/finish_reason"), "stop");
  EXPECT_EQ(text_at(json::parse(events[3]), "/choices/0/delta"), "{}");
  EXPECT_EQ(text_at(json::parse(events[4]), "/choices"), "[]");
  EXPECT_EQ(text_at(json::parse(events[4]), "/usage/completion_tokens"), "4");
  EXPECT_EQ(events[5], "[DONE]");
}

TEST(ApiServer, stream_without_usage_option_has_none) {
  Served served;
  const auto events = events_of(served.complete(R"("stream":true)").body);
  EXPECT_EQ(streamed_text(events, 0, "text"), "Hello, world.");
  for (const std::string& event : events) EXPECT_EQ(event.find("usage"), std::string::npos);
  EXPECT_EQ(text_at(json::parse(events.at(events.size() - 2)), "/choices/0/finish_reason"), "stop");
}

TEST(ApiServer, streamed_choices_are_told_apart) {
  Served served;
  const auto events = events_of(served.chat(R"("stream":true,"n":3,"max_tokens":5)").body);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(streamed_text(events, i, "delta/content"), "Hello");
  EXPECT_EQ(events.size(), 3 * 6 + 1U);
}

TEST(ApiServer, streamed_log_probabilities_are_those_of_the_whole_answer) {
  Served served({.reply = "a\xC3\xA9!"});
  for (const bool chat : {true, false}) {
    const char* options = chat ? R"("logprobs":true,"top_logprobs":1)" : R"("logprobs":1)";
    const char* array = chat ? "content" : "tokens";
    const auto whole = json_of(chat ? served.chat(options) : served.complete(options));
    const std::string streaming = std::string(options) + R"(,"stream":true)";
    json::array joined, offsets;
    for (const std::string& event :
         events_of((chat ? served.chat(streaming) : served.complete(streaming)).body)) {
      if (event == "[DONE]") continue;
      const auto value = json::parse(event);
      const json::value& logprobs = value.at("choices").at(0).at("logprobs");
      if (logprobs.is_null()) continue;
      for (const auto& entry : logprobs.at(array).as_array()) joined.push_back(entry);
      if (!chat) {
        for (const auto& entry : logprobs.at("text_offset").as_array()) offsets.push_back(entry);
      }
    }
    EXPECT_EQ(json::serialize(joined), text_at(whole, std::string("/choices/0/logprobs/") + array));
    if (!chat) {
      EXPECT_EQ(json::serialize(offsets), text_at(whole, "/choices/0/logprobs/text_offset"));
    }
  }
}

TEST(ApiServer, first_token_is_sent_before_the_second_is_made) {
  Served served;
  served.engine->hold();
  RawSocket socket(served.server->port());
  socket.send(Served::post_text("/v1/chat/completions", Served::chat_body(R"("stream":true)")));
  ASSERT_TRUE(socket.wait_for("text/event-stream"));  // headers come before any token
  EXPECT_EQ(socket.input().find("data:"), std::string::npos);
  served.engine->go_on();
  EXPECT_TRUE(socket.wait_for("[DONE]"));
}

TEST(ApiServer, request_id_of_the_client_comes_back) {
  Served served;
  const RawResponse response =
      served.ask(Served::post_text("/v1/chat/completions", Served::chat_body(), "X-Request-Id: my-7\r\n"));
  EXPECT_EQ(response.headers.at("x-request-id"), "my-7");
}

TEST(ApiServer, json_in_any_case_and_with_charset_is_accepted) {
  Served served;
  for (const char* type : {"application/json", "Application/JSON; charset=utf-8", "application/json ;x=y"}) {
    const std::string body = Served::chat_body();
    EXPECT_EQ(served
                  .ask(fmt::format("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: {}\r\n"
                                   "Content-Length: {}\r\n\r\n{}",
                                   type, body.size(), body))
                  .status,
              200)
        << type;
  }
}

TEST(ApiServer, disconnect_cancels_every_sequence_of_the_request) {
  for (const bool stream : {true, false}) {
    Served served({.reply = std::string(100000, 'x'), .context = 1 << 20, .step_microseconds = 200});
    RawSocket socket(served.server->port());
    socket.send(Served::post_text("/v1/chat/completions",
                                  Served::chat_body(stream ? R"("stream":true,"n":2)" : R"("n":2)")));
    ASSERT_TRUE(eventually([&] { return served.engine->generated() > 10; }));
    socket.close();
    EXPECT_TRUE(eventually([&] { return served.engine->active() == 0; })) << stream;
    EXPECT_EQ(served.engine->cancelled(), 2U);
    EXPECT_LT(served.engine->generated(), 200000);
    const std::string metrics = served.get("/metrics").body;
    EXPECT_NE(metrics.find("assay_finished_sequences_total{reason=\"cancelled\"} 2"), std::string::npos)
        << metrics;
  }
}

TEST(ApiServer, client_that_does_not_read_is_given_up) {
  ServeConfig config;
  config.http.max_stream_queue_bytes = 64 * 1024;
  Served served({.reply = std::string(200000, 'x'), .context = 1 << 20}, config);
  RawSocket socket(served.server->port(), 4096);
  socket.send(Served::post_text("/v1/chat/completions", Served::chat_body(R"("stream":true)")));
  EXPECT_TRUE(eventually([&] { return served.engine->cancelled() == 1; }));
  EXPECT_TRUE(eventually([&] { return served.engine->active() == 0; }));
  EXPECT_EQ(served.chat(R"("max_tokens":1)").status, 200);
}

TEST(ApiServer, many_streams_at_once_all_arrive_whole) {
  Served served({.reply = "The quick brown fox jumps over the lazy dog.", .step_microseconds = 50});
  std::vector<std::future<RawResponse>> clients;
  for (int i = 0; i < 48; ++i) {
    clients.push_back(std::async(std::launch::async, [&served, i] {
      return i % 2 == 0 ? served.chat(R"("stream":true)") : served.chat();
    }));
  }
  for (size_t i = 0; i < clients.size(); ++i) {
    const RawResponse response = clients[i].get();
    ASSERT_EQ(response.status, 200);
    const std::string text = i % 2 == 0 ? streamed_text(events_of(response.body), 0, "delta/content")
                                        : text_at(json_of(response), "/choices/0/message/content");
    EXPECT_EQ(text, "The quick brown fox jumps over the lazy dog.");
  }
}

TEST(ApiServer, pipelined_generations_are_answered_in_order) {
  Served served({.step_microseconds = 100});
  RawSocket socket(served.server->port());
  for (int n = 1; n <= 5; ++n) {
    const std::string more = fmt::format(R"("max_tokens":{}{})", n, n % 2 == 0 ? R"(,"stream":true)" : "");
    socket.send(Served::post_text("/v1/chat/completions", Served::chat_body(more)));
  }
  for (int n = 1; n <= 5; ++n) {
    const RawResponse response = socket.read_response();
    ASSERT_EQ(response.status, 200);
    const std::string text = n % 2 == 0 ? streamed_text(events_of(response.body), 0, "delta/content")
                                        : text_at(json_of(response), "/choices/0/message/content");
    EXPECT_EQ(text, std::string("Hello").substr(0, static_cast<size_t>(n)));
  }
}

TEST(ApiServer, drain_lets_streams_finish_and_refuses_new_requests) {
  Served served({.step_microseconds = 20000});
  RawSocket streaming(served.server->port());
  streaming.send(Served::post_text("/v1/chat/completions", Served::chat_body(R"("stream":true)")));
  ASSERT_TRUE(streaming.wait_for("data:"));
  // A request that has begun to arrive when the drain starts is answered, with 503.
  RawSocket arriving(served.server->port());
  const std::string late = Served::post_text("/v1/chat/completions", Served::chat_body());
  arriving.send(late.substr(0, 60));
  ASSERT_EQ(served.get("/health").status, 200);  // the two above have been seen
  const uint16_t port = served.server->port();
  auto drained = std::async(std::launch::async, [&] { return served.server->drain(20); });
  ASSERT_TRUE(eventually([&] { return !RawSocket(port).connected(); }));
  arriving.send(late.substr(60));
  const RawResponse refused = arriving.read_response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(text_at(json_of(refused), "/error/code"), "shutting_down");
  arriving.close();
  EXPECT_TRUE(streaming.wait_for("[DONE]"));
  EXPECT_EQ(streamed_text(events_of(streaming.read_response().body), 0, "delta/content"), "Hello, world.");
  streaming.close();
  EXPECT_TRUE(drained.get());
}

TEST(ApiServer, drain_deadline_ends_streams_with_an_error) {
  Served served({.reply = std::string(100000, 'x'), .context = 1 << 20, .step_microseconds = 1000});
  RawSocket streaming(served.server->port());
  streaming.send(Served::post_text("/v1/chat/completions", Served::chat_body(R"("stream":true)")));
  ASSERT_TRUE(streaming.wait_for("data:"));
  RawSocket waiting(served.server->port());
  waiting.send(Served::post_text("/v1/chat/completions", Served::chat_body()));
  ASSERT_TRUE(eventually([&] { return served.engine->active() == 2; }));
  auto drained = std::async(std::launch::async, [&] { return served.server->drain(0.2); });
  EXPECT_TRUE(streaming.wait_for("[DONE]"));
  EXPECT_NE(streaming.input().find("shutting_down"), std::string::npos);
  EXPECT_EQ(waiting.read_response().status, 503);
  drained.get();
}

TEST(ApiServer, destroying_it_under_load_is_clean) {
  for (int round = 0; round < 10; ++round) {
    auto served = std::make_unique<Served>(testing::FakeEngine::Options{
        .reply = std::string(100000, 'x'), .context = 1 << 20, .step_microseconds = 50});
    std::vector<std::unique_ptr<RawSocket>> sockets;
    for (int i = 0; i < 8; ++i) {
      sockets.push_back(std::make_unique<RawSocket>(served->server->port()));
      sockets.back()->send(
          Served::post_text("/v1/chat/completions", Served::chat_body(i % 2 == 0 ? R"("stream":true)" : "")));
    }
    ASSERT_TRUE(eventually([&] { return served->engine->active() == 8; }));
    served->server.reset();
    EXPECT_EQ(served->engine->active(), 0U);
  }
}

TEST(ApiServer, taken_port_is_one_clear_error) {
  Served served;
  ServeConfig config;
  config.http.port = served.server->port();
  const auto second = ApiServer::start(config, {.name = "m", .engine = served.engine});
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().message().find("in use"), std::string::npos);
}

}  // namespace
}  // namespace assay
