// Limits of a server against clients that are slow, greedy or many.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "http/steered_server.h"

namespace assay {
namespace {

using testing::ask;
using testing::Bench;
using testing::eventually;
using testing::post;
using testing::RawResponse;
using testing::RawSocket;

const std::string kHello = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";

// Sends piece by piece until all is sent, the peer has answered, or the peer is gone.
void trickle(RawSocket& socket, std::string_view bytes, size_t piece, int milliseconds) {
  while (!bytes.empty() && !socket.wait_for("\r\n\r\n", 0.001 * milliseconds)) {
    if (!socket.send(bytes.substr(0, piece))) return;
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
}

TEST(HttpLimits, trickled_head_is_cut_although_bytes_keep_coming) {
  ServerConfig config;
  config.head_timeout_seconds = 0.3;
  Bench bench(config);
  RawSocket socket(bench.server->port());
  trickle(socket, "GET /hello HTTP/1.1\r\nA: " + std::string(1000, 'x'), 1, 20);
  EXPECT_EQ(socket.read_response().status, 408);
  EXPECT_TRUE(socket.wait_for_close());
  EXPECT_EQ(bench.server->counters().timed_out, 1U);
}

TEST(HttpLimits, trickled_body_is_cut_below_the_rate_and_read_above_it) {
  ServerConfig config;
  config.body_timeout_seconds = 0.3;
  config.min_body_bytes_per_second = 2000;
  Bench bench(config);
  RawSocket slow(bench.server->port());
  trickle(slow, post("/echo", std::string(1000, 'x')), 1, 10);  // at most 100 bytes a second
  EXPECT_EQ(slow.read_response().status, 408);
  RawSocket steady(bench.server->port());
  trickle(steady, post("/echo", std::string(60000, 'x')), 1000, 10);  // at most 100 kB a second: over 0.6 s
  EXPECT_EQ(steady.read_response().status, 200);
}

TEST(HttpLimits, body_has_a_total_time_whatever_its_rate) {
  ServerConfig config;
  config.body_timeout_seconds = 0.2;
  config.min_body_bytes_per_second = 1;
  config.body_total_seconds = 0.4;
  Bench bench(config);
  RawSocket socket(bench.server->port());
  trickle(socket, post("/echo", std::string(100000, 'x')), 100, 10);
  EXPECT_EQ(socket.read_response().status, 408);
}

TEST(HttpLimits, trickling_reader_is_given_up_below_the_rate) {
  ServerConfig config;
  config.write_timeout_seconds = 0.5;
  config.min_write_bytes_per_second = 1 << 20;
  config.max_stream_queue_bytes = size_t{64} << 20;
  config.socket_buffer_bytes = 16 << 10;
  Bench bench(config);
  RawSocket socket(bench.server->port(), 4096);
  socket.send(post("/keep", ""));
  const auto responder = bench.wait_kept(0);
  responder->start_stream(200, {});
  ASSERT_TRUE(responder->send(std::string(size_t{32} << 20, 'z')));
  size_t taken = 0;
  const bool given_up = eventually([&] {
    taken += socket.take_some(1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return bench.disconnects.load() == 1;
  });
  EXPECT_TRUE(given_up) << "still served after " << taken << " bytes";
  EXPECT_GT(taken, 1000U);  // it did make progress all the time
  EXPECT_LT(taken, size_t{16} << 20);
}

TEST(HttpLimits, steady_reader_above_the_rate_gets_everything) {
  ServerConfig config;
  config.write_timeout_seconds = 0.3;
  config.min_write_bytes_per_second = 1000;
  config.max_stream_queue_bytes = size_t{64} << 20;
  config.socket_buffer_bytes = 16 << 10;
  Bench bench(config);
  RawSocket socket(bench.server->port(), 4096);
  socket.send(post("/keep", ""));
  const auto responder = bench.wait_kept(0);
  responder->start_stream(200, {});
  const size_t size = size_t{1} << 20;
  ASSERT_TRUE(responder->send(std::string(size, 'z')));
  responder->finish();
  size_t taken = 0;
  while (taken < size) {
    const size_t n = socket.take_some(8000);
    if (n == 0) break;
    taken += n;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // 131 rounds: more than the timeout
  }
  EXPECT_GE(taken, size);
  EXPECT_EQ(bench.disconnects.load(), 0);
}

TEST(HttpLimits, one_address_gets_its_share_of_connections) {
  ServerConfig config;
  config.max_connections_per_address = 2;
  Bench bench(config);
  auto first = std::make_unique<RawSocket>(bench.server->port());
  RawSocket second(bench.server->port());
  ASSERT_TRUE(eventually([&] { return bench.server->connections() == 2; }));
  {
    RawSocket third(bench.server->port());
    EXPECT_EQ(third.read_response().status, 429);
    EXPECT_TRUE(third.wait_for_close());
  }
  EXPECT_EQ(bench.server->counters().refused_per_address, 1U);
  EXPECT_EQ(bench.server->counters().refused_total, 0U);
  first.reset();
  ASSERT_TRUE(eventually([&] { return bench.server->connections() == 1; }));
  EXPECT_EQ(ask(bench.server->port(), kHello).status, 200);
}

TEST(HttpLimits, header_fields_are_counted) {
  ServerConfig config;
  config.limits.max_fields = 10;
  Bench bench(config);
  const auto with_fields = [&](int n) {
    std::string bytes = "GET /hello HTTP/1.1\r\nHost: x\r\n";
    for (int i = 1; i < n; ++i) bytes += fmt::format("A{}: 1\r\n", i);
    return ask(bench.server->port(), bytes + "\r\n").status;
  };
  EXPECT_EQ(with_fields(10), 200);
  EXPECT_EQ(with_fields(11), 431);
}

TEST(HttpLimits, endless_pipelining_ends_with_a_closed_connection) {
  ServerConfig config;
  config.max_pipelined = 4;
  Bench bench(config);
  RawSocket socket(bench.server->port());
  std::string ten;
  for (int i = 0; i < 10; ++i) ten += kHello;
  socket.send(ten);
  int answers = 0;
  std::string connection;
  for (RawResponse response = socket.read_response(); response.status == 200;
       response = socket.read_response()) {
    ++answers;
    connection = response.headers["connection"];
  }
  EXPECT_EQ(answers, 5);  // the first, and four that were there too early
  EXPECT_EQ(connection, "close");
  RawSocket patient(bench.server->port());
  for (int i = 0; i < 10; ++i) {
    patient.send(kHello);
    ASSERT_EQ(patient.read_response().status, 200);
  }
}

TEST(HttpLimits, bodies_of_all_connections_together_are_bounded) {
  ServerConfig config;
  config.max_held_body_bytes = 600000;  // one body of 200 kB with the room that strings grow by, not two
  Bench bench(config);
  const std::string request = post("/echo", std::string(200000, 'x'));
  auto first = std::make_unique<RawSocket>(bench.server->port());
  first->send(std::string_view(request).substr(0, 190000));
  ASSERT_TRUE(eventually([&] { return bench.server->held_body_bytes() > 180000; }));
  RawSocket second(bench.server->port());
  second.send(std::string_view(request).substr(0, 190000));
  EXPECT_EQ(second.read_response().status, 503);
  EXPECT_EQ(ask(bench.server->port(), kHello).status, 200);
  first->send(std::string_view(request).substr(190000));
  EXPECT_EQ(first->read_response().status, 200);  // who came first is served
  first.reset();
  second.close();
  EXPECT_TRUE(eventually([&] { return bench.server->held_body_bytes() == 0; }));
  EXPECT_EQ(ask(bench.server->port(), request).status, 200);
}

TEST(HttpLimits, what_cannot_become_a_request_is_refused_before_its_end) {
  Bench bench;
  for (const char* beginning :
       {"GET /hello\r\n", "GET /hello HTTP/2.0\r\n", "\x16\x03\x01", "\r\n\r\n", " GET /",
        "GET /hello HTTP/1.1\nHost", "GET /hello HTTP/1.1\r\nHost: x\r\n folded"}) {
    RawSocket socket(bench.server->port());
    socket.send(beginning);
    EXPECT_EQ(socket.read_response(5).status, 400) << beginning;
    EXPECT_TRUE(socket.wait_for_close());
  }
}

}  // namespace
}  // namespace assay
