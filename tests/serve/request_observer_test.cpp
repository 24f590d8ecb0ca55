// What a server says of its requests: access log, exported traces, counters by outcome.
#include "serve/request_observer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <sstream>

#include "base/file.h"
#include "serve/served.h"

namespace assay {
namespace {

using testing::eventually;
using testing::FakeEngine;
using testing::json_of;
using testing::RawResponse;
using testing::RawSocket;
using testing::Served;
using testing::text_at;
namespace json = boost::json;
namespace fs = std::filesystem;

// Takes OTLP/HTTP JSON and answers what it is told to.
class Collector {
 public:
  Collector() {
    std::vector<HttpServer::Route> routes;
    routes.push_back(
        {"POST", "/v1/traces", [this](HttpRequest request, std::shared_ptr<Responder> responder) {
           const std::scoped_lock lock(mutex_);
           const int status = refusals_ > 0 ? 503 : 200;
           if (refusals_ > 0) --refusals_;
           if (status == 200) take(request);
           responder->respond(text_response(status, "{}", "application/json"));
         }});
    auto started = HttpServer::start({}, std::move(routes));
    if (!started) ADD_FAILURE() << started.error().message();
    server_ = std::move(*started);
  }
  std::string endpoint() const { return "http://" + server_->address(); }
  void refuse(int times) {
    const std::scoped_lock lock(mutex_);
    refusals_ = times;
  }
  std::vector<json::object> spans() const {
    const std::scoped_lock lock(mutex_);
    return spans_;
  }

 private:
  void take(const HttpRequest& request) {
    EXPECT_EQ(request.headers.find("Content-Type"), "application/json");
    const json::value body = json::parse(request.body);
    for (const auto& resource : body.at("resourceSpans").as_array()) {
      EXPECT_EQ(text_at(resource, "/resource/attributes/0/value/stringValue"), "assay");
      for (const auto& scope : resource.at("scopeSpans").as_array()) {
        for (const auto& span : scope.at("spans").as_array()) spans_.push_back(span.as_object());
      }
    }
  }

  mutable std::mutex mutex_;
  std::vector<json::object> spans_;
  int refusals_ = 0;
  std::unique_ptr<HttpServer> server_;
};

std::string attribute(const json::object& span, std::string_view key) {
  for (const auto& entry : span.at("attributes").as_array()) {
    if (entry.at("key").as_string() != key) continue;
    const auto& value = entry.at("value").as_object();
    return value.begin()->value().is_string() ? std::string(value.begin()->value().as_string())
                                              : json::serialize(value.begin()->value());
  }
  return "(absent)";
}

class RequestObserverTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove(log_); }
  void TearDown() override { fs::remove(log_); }

  static ServeConfig watching(WatchConfig watch) {
    ServeConfig config;
    config.watch = std::move(watch);
    return config;
  }
  // The log's lines once there are `n`.
  std::vector<json::object> lines(size_t n) const {
    std::vector<json::object> found;
    eventually([&] {
      found.clear();
      std::istringstream text(read_file(log_).value_or(""));
      for (std::string line; std::getline(text, line);) found.push_back(json::parse(line).as_object());
      return found.size() >= n;
    });
    EXPECT_EQ(found.size(), n);
    return found;
  }

  const fs::path log_ = fs::temp_directory_path() / ("assay-access-" + std::to_string(::getpid()));
};

constexpr const char* kTraceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST_F(RequestObserverTest, every_request_has_its_line_with_its_outcome) {
  FakeEngine::Options options;
  options.max_active = 1;
  Served served(options, watching({.access_log = log_}));
  ASSERT_EQ(
      served.ask(Served::post_text("/v1/chat/completions", Served::chat_body(), "X-Request-Id: my-1\r\n"))
          .status,
      200);
  ASSERT_EQ(served.complete(R"("max_tokens":2,"stream":true)").status, 200);
  ASSERT_EQ(served.chat(R"("temperature":-1)").status, 400);
  served.engine->hold();  // the first choice must not end before the second is submitted
  ASSERT_EQ(served.complete(R"("n":2)").status, 429);
  served.engine->go_on();
  ASSERT_EQ(served.get("/health").status, 200);
  ASSERT_EQ(served.get("/nothing/secret?key=abc").status, 404);
  const auto log = lines(6);
  ASSERT_EQ(log.size(), 6U);
  const std::vector<std::vector<std::string>> expected = {{"/v1/chat/completions", "200", "stop"},
                                                          {"/v1/completions", "200", "length"},
                                                          {"/v1/chat/completions", "400", "invalid"},
                                                          {"/v1/completions", "429", "refused_queue"},
                                                          {"/health", "200", "done"},
                                                          {"null", "404", "invalid"}};
  for (size_t i = 0; i < log.size(); ++i) {
    EXPECT_EQ(text_at(log[i], "/route"), expected[i][0]);
    EXPECT_EQ(text_at(log[i], "/status"), expected[i][1]);
    EXPECT_EQ(text_at(log[i], "/outcome"), expected[i][2]);
    EXPECT_EQ(json::serialize(log[i]).find("secret"), std::string::npos) << "paths may hold secrets";
  }
  EXPECT_EQ(text_at(log[0], "/request_id"), "my-1");
  EXPECT_EQ(text_at(log[0], "/prompt_tokens"), std::to_string(served.engine->submitted()[0].prompt.size()));
  EXPECT_EQ(text_at(log[0], "/output_tokens"), "13");
  EXPECT_EQ(text_at(log[0], "/tenant"), "default");
  EXPECT_EQ(text_at(log[2], "/error_code"), "invalid_value");
  const std::string metrics = served.get("/metrics").body;
  for (const char* line :
       {R"(assay_generation_requests_total{outcome="stop",tenant="default"} 1)",
        R"(assay_generation_requests_total{outcome="length",tenant="default"} 1)",
        R"(assay_generation_requests_total{outcome="invalid",tenant="default"} 1)",
        R"(assay_generation_requests_total{outcome="refused_queue",tenant="default"} 1)",
        "assay_tenant_output_tokens_total{tenant=\"default\"} 15", "assay_request_seconds_count 2"}) {
    EXPECT_NE(metrics.find(std::string(line) + "\n"), std::string::npos) << line << "\nin\n" << metrics;
  }
}

TEST_F(RequestObserverTest, client_that_leaves_is_logged_as_cancelled_once) {
  Served served({}, watching({.access_log = log_}));
  for (const char* stream : {"true", "false"}) {
    served.engine->hold();
    {
      RawSocket socket(served.server->port());
      socket.send(Served::post_text("/v1/completions",
                                    Served::completion_body(std::string(R"("stream":)") + stream)));
      ASSERT_TRUE(eventually([&] { return served.engine->active() == 1; }));
    }
    ASSERT_TRUE(eventually([&] { return served.engine->active() == 0; }));
    served.engine->go_on();
  }
  const auto log = lines(2);
  for (const auto& line : log) {
    EXPECT_EQ(text_at(line, "/status"), "499");
    EXPECT_EQ(text_at(line, "/outcome"), "cancelled");
  }
}

TEST_F(RequestObserverTest, embeddings_are_told_with_their_tokens) {
  Collector collector;
  Served served({}, watching({.access_log = log_, .otlp_endpoint = collector.endpoint(), .trace_rate = 1}));
  ASSERT_EQ(served.post("/v1/embeddings", R"({"model":"default","input":["hello","you"]})").status, 200);
  const auto line = lines(1)[0];
  EXPECT_EQ(text_at(line, "/outcome"), "done");
  EXPECT_EQ(text_at(line, "/prompt_tokens"), "8");  // a byte each
  ASSERT_TRUE(eventually([&] { return collector.spans().size() == 1; }));
  EXPECT_EQ(collector.spans()[0].at("name"), "embeddings default");
  EXPECT_EQ(attribute(collector.spans()[0], "gen_ai.usage.input_tokens"), "8");
}

TEST_F(RequestObserverTest, log_is_opened_anew_on_request) {
  Served served({}, watching({.access_log = log_}));
  served.get("/health");
  ASSERT_EQ(lines(1).size(), 1U);
  const fs::path moved = log_.string() + ".1";
  fs::rename(log_, moved);
  served.server->reopen_logs();
  served.get("/version");
  EXPECT_EQ(text_at(lines(1)[0], "/route"), "/version");
  fs::remove(moved);
}

TEST_F(RequestObserverTest, log_that_cannot_be_written_refuses_the_start) {
  auto engine = std::make_shared<FakeEngine>(FakeEngine::Options{});
  const auto server =
      ApiServer::start(watching({.access_log = "/no/such/folder/log"}), {.name = "x", .engine = engine});
  ASSERT_FALSE(server.has_value());
  EXPECT_NE(server.error().message().find("/no/such/folder/log"), std::string::npos);
  const auto other =
      ApiServer::start(watching({.otlp_endpoint = "ftp://x"}), {.name = "x", .engine = engine});
  EXPECT_FALSE(other.has_value());
}

TEST_F(RequestObserverTest, full_disk_does_not_stop_serving) {
  Served served({}, watching({.access_log = "/dev/full"}));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(served.chat().status, 200);
  EXPECT_TRUE(eventually([&] {
    return served.get("/metrics").body.find("\nassay_access_log_dropped_lines_total 0\n") ==
           std::string::npos;
  }));
}

TEST_F(RequestObserverTest, trace_of_the_caller_is_continued_and_log_agrees) {
  Collector collector;
  Served served({}, watching({.access_log = log_, .otlp_endpoint = collector.endpoint(), .trace_rate = 0}));
  const RawResponse response = served.ask(
      Served::post_text("/v1/chat/completions", Served::chat_body(R"("stream":true)"),
                        std::string("tracestate: vendor=1\r\ntraceparent: ") + kTraceparent + "\r\n"));
  ASSERT_EQ(response.status, 200);
  ASSERT_TRUE(eventually([&] { return collector.spans().size() == 4; }));
  const auto spans = collector.spans();
  const json::object& root = spans[0];
  EXPECT_EQ(root.at("name"), "chat org/toy");
  EXPECT_EQ(root.at("traceId"), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(root.at("parentSpanId"), "b7ad6b7169203331");
  EXPECT_EQ(root.at("traceState"), "vendor=1");
  EXPECT_EQ(attribute(root, "gen_ai.usage.output_tokens"), "13");
  EXPECT_EQ(attribute(root, "server.port"), std::to_string(served.server->port()));
  for (size_t i = 1; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].at("parentSpanId"), root.at("spanId"));
    EXPECT_EQ(spans[i].at("traceId"), root.at("traceId"));
  }
  const auto line = lines(1)[0];
  EXPECT_EQ(line.at("trace_id"), root.at("traceId"));
  EXPECT_EQ(line.at("span_id"), root.at("spanId"));
  EXPECT_EQ(response.headers.at("traceresponse"),
            "00-0af7651916cd43dd8448eb211c80319c-" + std::string(root.at("spanId").as_string()) + "-01");
}

TEST_F(RequestObserverTest, head_rate_errors_and_slow_requests_decide_what_is_kept) {
  struct Case {
    double rate;
    double slow_seconds;
    std::string error;
    std::string headers;
    size_t spans;
  };
  const std::string unsampled = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00\r\n";
  for (const Case& row :
       {Case{1, 1000, "", "", 4}, Case{0, 1000, "", "", 0}, Case{1, 1000, "", unsampled, 0},
        Case{0, 0, "", "", 4}, Case{0, 1000, "broke", "", 4}, Case{0, 0, "", unsampled, 4}}) {
    Collector collector;
    FakeEngine::Options options;
    options.error_after_first = row.error;
    Served served(options, watching({.otlp_endpoint = collector.endpoint(),
                                     .trace_rate = row.rate,
                                     .trace_slow_seconds = row.slow_seconds}));
    served.ask(Served::post_text("/v1/chat/completions", Served::chat_body(), row.headers));
    served.get("/health");  // never traced
    served.server->drain(10);
    EXPECT_EQ(collector.spans().size(), row.spans) << row.rate << " " << row.slow_seconds << row.error;
    if (!row.error.empty() && !collector.spans().empty()) {
      EXPECT_EQ(collector.spans()[0].at("status"), json::parse(R"({"code": 2})"));
    }
  }
}

TEST_F(RequestObserverTest, busy_collector_is_asked_again_and_losses_are_counted) {
  Collector collector;
  collector.refuse(1);
  Served served({}, watching({.otlp_endpoint = collector.endpoint() + "/v1/traces", .trace_rate = 1}));
  served.chat();
  EXPECT_TRUE(eventually([&] { return collector.spans().size() == 4; }));
  EXPECT_TRUE(eventually([&] {
    return served.get("/metrics").body.find("assay_trace_spans_total{result=\"exported\"} 4\n") !=
           std::string::npos;
  }));
}

TEST_F(RequestObserverTest, collector_that_is_gone_does_not_hold_requests_up) {
  std::string gone;
  {
    const Collector collector;
    gone = collector.endpoint();
  }
  Served served({}, watching({.otlp_endpoint = gone, .trace_rate = 1}));
  for (int i = 0; i < 5; ++i) ASSERT_EQ(served.chat().status, 200);
  served.server->drain(1);
}

}  // namespace
}  // namespace assay
