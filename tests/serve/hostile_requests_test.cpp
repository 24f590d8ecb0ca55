// Hostile and odd requests over real sockets: each gets exactly its status and error code, or its end, and
// the server answers a normal request after every one of them.
#include "serve/hostile_requests.h"

#include <gtest/gtest.h>

#include <future>
#include <set>

namespace assay {
namespace {

using testing::After;
using testing::chat_bytes;
using testing::HostileRow;
using testing::RawResponse;
using testing::RawSocket;
using testing::Served;

constexpr size_t kBodyLimit = 100000;

ServeConfig small_bodies() {
  ServeConfig config;
  config.http.limits.body_bytes = kBodyLimit;
  return config;
}

void expect_error_object(const HostileRow& row, const RawResponse& response) {
  const auto body = testing::json_of(response);
  EXPECT_EQ(testing::text_at(body, "/error/code"), row.code)
      << row.name << ": " << response.body.substr(0, 500);
  EXPECT_GT(testing::text_at(body, "/error/message").size(), 10U) << row.name;
  // An error must not send back what it was sent.
  EXPECT_LT(response.body.size(), 2000U) << row.name;
}

// What the row says about its connection.
void expect_after(const HostileRow& row, RawSocket& socket) {
  if (row.after == After::kClosed) {
    EXPECT_TRUE(socket.wait_for_close()) << row.name;
    EXPECT_EQ(socket.input(), "") << row.name << ": more was answered";
    return;
  }
  socket.send("GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(socket.read_response().status, 200) << row.name << ": the connection is lost";
}

void play(const std::vector<HostileRow>& rows) {
  Served served({}, small_bodies(), true, true, ToolFormat::kHermes);
  std::set<std::string> names;
  for (const HostileRow& row : rows) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " comes twice";
    const size_t submitted_before = served.engine->submitted().size();
    RawSocket socket(served.server->port());
    socket.send(row.bytes);
    RawResponse response = socket.read_response();
    if (response.status == 100) response = socket.read_response();
    EXPECT_EQ(response.status, row.status) << row.name << ": " << response.body.substr(0, 500);
    EXPECT_TRUE(response.complete) << row.name;
    EXPECT_TRUE(response.headers.contains("x-request-id")) << row.name;
    EXPECT_FALSE(response.headers.contains("x-injected")) << row.name;
    if (row.status != 200) {
      expect_error_object(row, response);
      // Closed: nothing of it has reached the engine.
      EXPECT_EQ(served.engine->submitted().size(), submitted_before) << row.name;
    }
    expect_after(row, socket);
    EXPECT_EQ(served.chat().status, 200) << "after " << row.name;
  }
}

TEST(HostileRequests, there_are_enough_of_them) {
  const size_t all = testing::framing_rows().size() + testing::json_rows().size() +
                     testing::parameter_rows().size() + testing::schema_rows().size();
  EXPECT_GE(all, 400U);
}

TEST(HostileRequests, framing) {
  play(testing::framing_rows());
}
TEST(HostileRequests, json) {
  play(testing::json_rows());
}
TEST(HostileRequests, parameters) {
  play(testing::parameter_rows());
}
TEST(HostileRequests, schemas_tools_and_biases) {
  play(testing::schema_rows());
}

// --- what takes more than one message ---

TEST(HostileConnections, half_open_ones_end_by_themselves) {
  ServeConfig config = small_bodies();
  config.http.head_timeout_seconds = 0.3;
  config.http.body_timeout_seconds = 0.3;
  config.http.idle_timeout_seconds = 0.5;
  Served served({}, config);
  const std::string good = chat_bytes(Served::chat_body());
  struct Case {
    const char* name;
    std::string bytes;
    bool end_writing;
    int status;  // 0: cut without an answer
  };
  for (const Case& c :
       {Case{"silence", "", false, 0}, Case{"silence, half closed", "", true, 0},
        Case{"half a line", "GET /hea", false, 408}, Case{"half a line, half closed", "GET /hea", true, 0},
        Case{"half a head", "GET /health HTTP/1.1\r\nHost: x\r\n", false, 408},
        Case{"half a body", good.substr(0, good.size() - 10), false, 408},
        Case{"half a body, half closed", good.substr(0, good.size() - 10), true, 0},
        Case{"half a chunk",
             "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
             false, 408}}) {
    RawSocket socket(served.server->port());
    socket.send(c.bytes);
    if (c.end_writing) socket.end_writing();
    const RawResponse response = socket.read_response();
    EXPECT_EQ(response.status, c.status) << c.name;
    if (c.status != 0) {
      EXPECT_EQ(testing::text_at(testing::json_of(response), "/error/code"), "request_timeout");
    }
    EXPECT_TRUE(socket.wait_for_close()) << c.name;
    EXPECT_EQ(served.chat().status, 200) << "after " << c.name;
  }
  EXPECT_TRUE(served.engine->submitted().size() == 8U);
}

TEST(HostileConnections, clients_that_leave_at_any_byte_leave_nothing_behind) {
  Served served({.step_microseconds = 200}, small_bodies());
  const std::string good = chat_bytes(Served::chat_body(R"("stream":true)"));
  for (size_t cut = 0; cut <= good.size(); cut += 7) {
    RawSocket socket(served.server->port());
    socket.send(good.substr(0, cut));
    if (cut % 2 == 0) socket.reset_on_close();
  }
  {
    RawSocket socket(served.server->port());
    socket.send(good);
    socket.wait_for("data:");
    socket.reset_on_close();
  }
  EXPECT_TRUE(testing::eventually([&] { return served.engine->active() == 0; }));
  EXPECT_EQ(served.chat().status, 200);
}

TEST(HostileConnections, pipelined_mixture_is_answered_in_order) {
  Served served({}, small_bodies());
  RawSocket socket(served.server->port());
  std::string all;
  std::vector<int> expected;
  for (int i = 0; i < 30; ++i) {
    all += chat_bytes(Served::chat_body(R"("max_tokens":2)"));
    expected.push_back(200);
    all += chat_bytes("{");
    expected.push_back(400);
    all += "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n";
    expected.push_back(404);
  }
  all += "BROKEN\r\n\r\n" + chat_bytes(Served::chat_body());
  expected.push_back(400);
  socket.send(all);
  for (const int status : expected) ASSERT_EQ(socket.read_response().status, status);
  EXPECT_TRUE(socket.wait_for_close());
  EXPECT_EQ(socket.input(), "");
}

TEST(HostileConnections, a_hundred_stuck_clients_do_not_delay_an_honest_one) {
  Served served({}, small_bodies());
  std::vector<std::unique_ptr<RawSocket>> stuck;
  const std::string good = chat_bytes(Served::chat_body());
  for (size_t i = 0; i < 100; ++i) {
    stuck.push_back(std::make_unique<RawSocket>(served.server->port()));
    stuck.back()->send(good.substr(0, i * good.size() / 100));
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(served.chat().status, 200);
}

// Compiling the largest schemas takes a while; that is their own request's time.
TEST(HostileConnections, health_answers_while_schemas_are_compiled) {
  Served served({}, small_bodies());
  std::string properties;
  for (int i = 0; i < 300; ++i) {
    properties += fmt::format(R"({}"p{}":{{"type":"string","pattern":"(a|b)*a(a|b){{9}}x{}"}})",
                              i == 0 ? "" : ",", i, i);
  }
  const std::string bomb = chat_bytes(Served::chat_body(
      R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{)" +
      properties + "}}}}"));
  std::vector<std::future<int>> bombs;
  for (int i = 0; i < 4; ++i)
    bombs.push_back(std::async(std::launch::async, [&] { return served.ask(bomb).status; }));
  for (int i = 0; i < 20; ++i) {
    RawSocket socket(served.server->port());
    socket.send("GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(socket.read_response(5).status, 200) << i;
  }
  for (auto& pending : bombs) {
    const int status = pending.get();
    EXPECT_TRUE(status == 200 || status == 400) << status;
  }
  EXPECT_EQ(served.chat().status, 200);
}

}  // namespace
}  // namespace assay
