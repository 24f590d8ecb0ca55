#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "http/steered_server.h"

namespace assay {
namespace {

using testing::ask;
using testing::Bench;
using testing::eventually;
using testing::post;
using testing::RawResponse;
using testing::RawSocket;

// --- streams ---

TEST(HttpServer, stream_from_another_thread_arrives_whole) {
  Bench bench;
  RawSocket socket(bench.server->port());
  socket.send(post("/keep", ""));
  const auto responder = bench.wait_kept(0);
  std::string sent;
  std::thread producer([&] {
    responder->start_stream(200, {{"Content-Type", "text/event-stream"}});
    Random random(7, "stream");
    for (int i = 0; i < 500; ++i) {
      const std::string piece = fmt::format("piece {} {}\n", i, std::string(random.below(200), 'y'));
      EXPECT_TRUE(responder->send(piece));
      sent += piece;
    }
    responder->finish();
  });
  const RawResponse response = socket.read_response();
  producer.join();
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(response.body, sent);
  EXPECT_EQ(bench.disconnects.load(), 0);
  socket.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");  // the connection lives on
  EXPECT_EQ(socket.read_response().status, 200);
}

TEST(HttpServer, stream_to_http_1_0_ends_with_the_connection) {
  Bench bench;
  RawSocket socket(bench.server->port());
  socket.send("POST /keep HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
  const auto responder = bench.wait_kept(0);
  responder->start_stream(200, {});
  responder->send("abc");
  responder->send("def");
  responder->finish();
  const RawResponse response = socket.read_response();
  EXPECT_EQ(response.body, "abcdef");
  EXPECT_FALSE(response.headers.contains("transfer-encoding"));
}

TEST(HttpServer, client_that_leaves_is_noticed_before_and_during_the_answer) {
  Bench bench;
  for (const bool started : {false, true}) {
    for (const bool reset : {false, true}) {
      const int before = bench.disconnects.load();
      const size_t index = static_cast<size_t>(bench.calls.load());
      RawSocket socket(bench.server->port());
      socket.send(post("/keep", ""));
      const auto responder = bench.wait_kept(index);
      if (started) {
        responder->start_stream(200, {});
        responder->send("first");
        ASSERT_TRUE(socket.wait_for("first"));
      }
      if (reset) socket.reset_on_close();
      socket.close();
      ASSERT_TRUE(eventually([&] { return bench.disconnects.load() == before + 1; })) << started << reset;
      EXPECT_TRUE(responder->disconnected());
      EXPECT_FALSE(responder->send("more"));
      bool told = false;
      responder->on_disconnect([&] { told = true; });  // too late to wait: told at once
      EXPECT_TRUE(told);
    }
  }
}

TEST(HttpServer, half_closed_client_still_gets_an_answer_that_is_ready) {
  Bench bench;
  RawSocket socket(bench.server->port());
  socket.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  socket.end_writing();
  EXPECT_EQ(socket.read_response().body, "hello");
  EXPECT_TRUE(socket.wait_for_close());
}

TEST(HttpServer, slow_reader_is_given_up_when_its_queue_is_full) {
  ServerConfig config;
  config.max_stream_queue_bytes = 256 * 1024;
  Bench bench(config);
  RawSocket socket(bench.server->port(), 4096);
  socket.send(post("/keep", ""));
  const auto responder = bench.wait_kept(0);
  responder->start_stream(200, {});
  const std::string piece(16 * 1024, 'z');
  bool alive = true;
  int sent = 0;
  while (alive && sent < 10000) {
    alive = responder->send(piece);
    ++sent;
  }
  EXPECT_FALSE(alive) << "160 MB were taken for a client that reads nothing";
  EXPECT_TRUE(eventually([&] { return bench.disconnects.load() == 1; }));
}

TEST(HttpServer, stalled_reader_is_given_up_after_the_write_timeout) {
  ServerConfig config;
  config.write_timeout_seconds = 0.2;
  config.max_stream_queue_bytes = size_t{64} << 20;
  Bench bench(config);
  RawSocket socket(bench.server->port(), 4096);
  socket.send(post("/keep", ""));
  const auto responder = bench.wait_kept(0);
  responder->start_stream(200, {});
  ASSERT_TRUE(responder->send(std::string(size_t{32} << 20, 'z')));
  EXPECT_TRUE(eventually([&] { return bench.disconnects.load() == 1; }));
  EXPECT_FALSE(responder->send("x"));
}

TEST(HttpServer, dropped_stream_is_cut_and_not_completed) {
  Bench bench;
  RawSocket socket(bench.server->port());
  socket.send(post("/keep", ""));
  auto responder = bench.wait_kept(0);
  responder->start_stream(200, {});
  responder->send("half");
  ASSERT_TRUE(socket.wait_for("half"));
  responder.reset();
  bench.kept.clear();
  EXPECT_TRUE(socket.wait_for_close());
  EXPECT_EQ(socket.input().find("0\r\n\r\n"), std::string::npos);
}

TEST(HttpServer, many_streams_at_once_are_kept_apart) {
  ServerConfig config;
  config.io_threads = 2;
  Bench bench(config);
  constexpr size_t kStreams = 32;
  std::vector<std::future<RawResponse>> clients;
  for (size_t i = 0; i < kStreams; ++i) {
    clients.push_back(
        std::async(std::launch::async, [&] { return ask(bench.server->port(), post("/keep", "")); }));
  }
  bench.wait_kept(kStreams - 1);
  for (size_t i = 0; i < kStreams; ++i) bench.kept[i]->start_stream(200, {});
  for (int round = 0; round < 50; ++round) {
    for (size_t i = 0; i < kStreams; ++i) bench.kept[i]->send(fmt::format("[{}]", i));
  }
  for (size_t i = 0; i < kStreams; ++i) bench.kept[i]->finish();
  std::vector<int> seen(kStreams, 0);
  for (auto& client : clients) {
    const std::string body = client.get().body;
    const std::string unit = body.substr(0, body.find(']') + 1);
    ASSERT_FALSE(unit.empty());
    std::string expected;
    for (int round = 0; round < 50; ++round) expected += unit;
    EXPECT_EQ(body, expected);
    ++seen.at(static_cast<size_t>(std::stoi(unit.substr(1))));
  }
  EXPECT_EQ(seen, std::vector<int>(kStreams, 1));
}

// --- drain ---

TEST(HttpServer, drain_closes_idle_connections_and_lets_answers_finish) {
  Bench bench;
  RawSocket idle(bench.server->port());
  idle.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(idle.read_response().status, 200);
  RawSocket busy(bench.server->port());
  busy.send(post("/keep", ""));
  const auto responder = bench.wait_kept(0);
  const uint16_t port = bench.server->port();
  auto drained = std::async(std::launch::async, [&] { return bench.server->drain(10); });
  EXPECT_TRUE(idle.wait_for_close());
  EXPECT_FALSE(RawSocket(port).connected());
  responder->respond(text_response(200, "late but whole"));
  const RawResponse response = busy.read_response();
  EXPECT_EQ(response.body, "late but whole");
  EXPECT_EQ(response.headers.at("connection"), "close");
  busy.close();
  EXPECT_TRUE(drained.get());
}

TEST(HttpServer, drain_cuts_what_does_not_finish_in_time) {
  Bench bench;
  RawSocket busy(bench.server->port());
  busy.send(post("/keep", ""));
  const auto responder = bench.wait_kept(0);
  responder->start_stream(200, {});
  responder->send("x");
  ASSERT_TRUE(busy.wait_for("x"));
  EXPECT_FALSE(bench.server->drain(0.05));
  EXPECT_EQ(bench.disconnects.load(), 1);
  EXPECT_TRUE(busy.wait_for_close());
}

TEST(HttpServer, responders_may_outlive_the_server) {
  std::shared_ptr<Responder> survivor;
  {
    Bench bench;
    RawSocket socket(bench.server->port());
    socket.send(post("/keep", ""));
    survivor = bench.wait_kept(0);
  }
  EXPECT_TRUE(survivor->disconnected());
  survivor->respond(text_response(200, "nobody"));
  EXPECT_FALSE(survivor->send("nobody"));
  survivor->post([] { ADD_FAILURE() << "ran after the server's end"; });
}

TEST(HttpServer, hostile_byte_noise_never_stops_it) {
  ServerConfig config;
  config.head_timeout_seconds = 0.05;
  config.body_timeout_seconds = 0.05;
  Bench bench(config);
  const std::string seed_text =
      post("/echo", "hello", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n");
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, "noise");
    std::string bytes = seed_text;
    const size_t changes = 1 + random.below(8);
    for (size_t i = 0; i < changes; ++i) {
      const size_t at = random.below(bytes.size());
      if (random.below(3) == 0) {
        bytes.erase(at, 1 + random.below(6));
      } else {
        bytes[at] = static_cast<char>(random.below(256));
      }
      if (bytes.empty()) bytes = "\r\n";
    }
    RawSocket socket(bench.server->port());
    socket.send(bytes);
    if (seed % 2 == 0) socket.end_writing();
  }
  EXPECT_EQ(ask(bench.server->port(), "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
}

}  // namespace
}  // namespace assay
