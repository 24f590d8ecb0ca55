#include "http/server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
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

TEST(HttpServer, port_zero_picks_one_and_answers) {
  Bench bench;
  EXPECT_GT(bench.server->port(), 0);
  EXPECT_EQ(bench.server->address(), fmt::format("127.0.0.1:{}", bench.server->port()));
  const RawResponse response = ask(bench.server->port(), "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "hello");
  EXPECT_TRUE(response.headers.contains("date"));
  EXPECT_TRUE(response.headers.contains("x-request-id"));
}

TEST(HttpServer, taken_port_is_one_clear_error) {
  Bench bench;
  ServerConfig config;
  config.port = bench.server->port();
  const auto second = HttpServer::start(config, {});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(second.error().message().find("in use"), std::string::npos) << second.error().message();
  EXPECT_NE(second.error().message().find(std::to_string(config.port)), std::string::npos);
}

TEST(HttpServer, bad_address_is_refused) {
  for (const char* address : {"localhost", "", "1.2.3", "256.0.0.1", "::g"}) {
    ServerConfig config;
    config.address = address;
    const auto server = HttpServer::start(config, {});
    ASSERT_FALSE(server.has_value()) << address;
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument) << address;
  }
}

TEST(HttpServer, ipv6_loopback_is_served) {
  ServerConfig config;
  config.address = "::1";
  const auto server = HttpServer::start(config, {});
  if (!server) GTEST_SKIP() << "no IPv6 on this machine: " << server.error().message();
  EXPECT_TRUE((*server)->address().starts_with("[::1]:"));
}

// Every request on a connection of its own; the server must answer each and go on.
TEST(HttpServer, odd_requests_get_their_status) {
  ServerConfig config;
  config.limits = {.head_bytes = 2048, .body_bytes = 1000};
  Bench bench(config);
  struct Case {
    const char* name;
    std::string bytes;
    int status;
  };
  const std::string host = "Host: x\r\n";
  const std::vector<Case> cases = {
      {"plain get", "GET /hello HTTP/1.1\r\n" + host + "\r\n", 200},
      {"lower-case host name", "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n", 200},
      {"1.0 without host", "GET /hello HTTP/1.0\r\n\r\n", 200},
      {"absolute form", "GET http://x/hello HTTP/1.1\r\n" + host + "\r\n", 200},
      {"query", "GET /hello?a=b HTTP/1.1\r\n" + host + "\r\n", 200},
      {"unknown route", "GET /nothing HTTP/1.1\r\n" + host + "\r\n", 404},
      {"trailing slash is another route", "GET /hello/ HTTP/1.1\r\n" + host + "\r\n", 404},
      {"dot segments are not resolved", "GET /a/../hello HTTP/1.1\r\n" + host + "\r\n", 404},
      {"wrong method", "DELETE /hello HTTP/1.1\r\n" + host + "\r\n", 405},
      {"unknown method", "BREW /hello HTTP/1.1\r\n" + host + "\r\n", 405},
      {"asterisk", "OPTIONS * HTTP/1.1\r\n" + host + "\r\n", 400},
      {"connect", "CONNECT x:443 HTTP/1.1\r\n" + host + "\r\n", 400},
      {"bad escape", "GET /names/%zz HTTP/1.1\r\n" + host + "\r\n", 400},
      {"no host", "GET /hello HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET /hello HTTP/1.1\r\n" + host + host + "\r\n", 400},
      {"no version", "GET /hello\r\n\r\n", 400},
      {"version 2", "GET /hello HTTP/2.0\r\n" + host + "\r\n", 400},
      {"http2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
      {"tls hello",
       std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(64, 'x') + "\r\n\r\n",
       400},
      {"garbage", "\x01\x02\x03\x04 \x05\r\n\r\n", 400},
      {"space in target", "GET /he llo HTTP/1.1\r\n" + host + "\r\n", 400},
      {"bare line feeds", "GET /hello HTTP/1.1\nHost: x\n\n" + std::string(64, ' ') + "\r\n\r\n", 400},
      {"no colon", "GET /hello HTTP/1.1\r\n" + host + "nonsense\r\n\r\n", 400},
      {"space before colon", "GET /hello HTTP/1.1\r\n" + host + "Name : x\r\n\r\n", 400},
      {"control byte in header", "GET /hello HTTP/1.1\r\n" + host + std::string("A: \x01\r\n\r\n"), 400},
      {"long target", "GET /" + std::string(4096, 'a') + " HTTP/1.1\r\n" + host + "\r\n", 431},
      {"long header", "GET /hello HTTP/1.1\r\n" + host + "A: " + std::string(4096, 'a') + "\r\n\r\n", 431},
      {"negative length", "POST /echo HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", 400},
      {"length not a number", "POST /echo HTTP/1.1\r\n" + host + "Content-Length: 5x\r\n\r\nhello", 400},
      {"huge length", "POST /echo HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {"large length", "POST /echo HTTP/1.1\r\n" + host + "Content-Length: 1001\r\n\r\n", 413},
      {"largest length", post("/echo", std::string(1000, 'x')), 200},
      {"two lengths",
       "POST /echo HTTP/1.1\r\n" + host + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400},
      {"length and chunks",
       "POST /echo HTTP/1.1\r\n" + host + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400},
      {"chunks and length",
       "POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
       400},
      {"chunked",
       "POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200},
      {"chunked with extension and trailer",
       "POST /echo HTTP/1.1\r\n" + host +
           "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nT: u\r\n\r\n",
       200},
      {"gzip coding", "POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {"gzip then chunked",
       "POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {"chunked then gzip",
       "POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 501},
      {"chunked in 1.0", "POST /echo HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400},
      {"bad chunk size",
       "POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", 400},
      {"negative chunk size",
       "POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n", 400},
      {"chunk overflow",
       "POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400},
      {"chunk too large", "POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n",
       413},
      {"chunks too large together",
       "POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n1f4\r\n" +
           std::string(500, 'x') + "\r\n1f5\r\n",
       413},
      {"endless chunk extension",
       "POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(8192, 'x'),
       431},
      {"endless trailer",
       "POST /echo HTTP/1.1\r\n" + host +
           "Transfer-Encoding: chunked\r\n\r\n0\r\nA: " + std::string(8192, 'x'),
       431},
      {"strange expectation",
       "POST /echo HTTP/1.1\r\n" + host + "Expect: miracles\r\nContent-Length: 1\r\n\r\nx", 417},
      {"handler throws", "GET /throw HTTP/1.1\r\n" + host + "\r\n", 500},
      {"handler forgets", "GET /forget HTTP/1.1\r\n" + host + "\r\n", 500},
  };
  for (const Case& c : cases) {
    const RawResponse response = ask(bench.server->port(), c.bytes);
    EXPECT_EQ(response.status, c.status) << c.name << ": " << response.body;
    EXPECT_TRUE(response.complete) << c.name;
    EXPECT_TRUE(response.headers.contains("x-request-id")) << c.name;
  }
  EXPECT_EQ(ask(bench.server->port(), "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
}

TEST(HttpServer, wrong_method_names_the_allowed) {
  Bench bench;
  EXPECT_EQ(ask(bench.server->port(), "PUT /hello HTTP/1.1\r\nHost: x\r\n\r\n").headers["allow"],
            "GET, HEAD");
  EXPECT_EQ(ask(bench.server->port(), "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n").headers["allow"], "POST");
}

TEST(HttpServer, head_has_length_but_no_body) {
  Bench bench;
  RawSocket socket(bench.server->port());
  socket.send("HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawResponse head = socket.read_response(10, true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), "5");
  EXPECT_EQ(socket.read_response().body, "hello");
}

TEST(HttpServer, request_id_is_echoed_when_safe_and_replaced_when_not) {
  Bench bench;
  const auto get = [&](const std::string& id) {
    return ask(bench.server->port(), "GET /headers HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + id + "\r\n\r\n");
  };
  EXPECT_EQ(get("abc-1.2:3_Z").headers["x-request-id"], "abc-1.2:3_Z");
  EXPECT_TRUE(get("a b").headers["x-request-id"].starts_with("req-"));
  EXPECT_TRUE(get(std::string(129, 'a')).headers["x-request-id"].starts_with("req-"));
  EXPECT_NE(get("<x>").headers["x-request-id"], get("<x>").headers["x-request-id"]);
}

TEST(HttpServer, placeholders_are_decoded) {
  Bench bench;
  EXPECT_EQ(ask(bench.server->port(), "GET /names/org/model%20x HTTP/1.1\r\nHost: x\r\n\r\n").body,
            "org/model x");
}

TEST(HttpServer, any_cutting_of_pipelined_requests_gives_the_same_answers) {
  Bench bench;
  std::string bytes;
  std::vector<std::string> expected;
  for (int i = 0; i < 12; ++i) {
    const std::string body = fmt::format("body {}", i) + std::string(static_cast<size_t>(i * 50), 'x');
    if (i % 3 == 2) {
      bytes += fmt::format(
          "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
          body.size(), body);
    } else {
      bytes += post("/echo", body);
    }
    expected.push_back(body);
  }
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed, "cuts");
    RawSocket socket(bench.server->port());
    for (size_t start = 0; start < bytes.size();) {
      const size_t length = 1 + random.below(seed == 0 ? 1 : 400);
      ASSERT_TRUE(socket.send(std::string_view(bytes).substr(start, length)));
      start += length;
    }
    for (const std::string& body : expected) {
      const RawResponse response = socket.read_response();
      ASSERT_EQ(response.status, 200);
      ASSERT_EQ(response.body, body) << "seed " << seed;
    }
  }
}

TEST(HttpServer, connection_close_and_http_1_0_are_honoured) {
  Bench bench;
  for (const char* request :
       {"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET /hello HTTP/1.0\r\n\r\n"}) {
    RawSocket socket(bench.server->port());
    socket.send(request);
    const RawResponse response = socket.read_response();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.headers.at("connection"), "close");
    EXPECT_TRUE(socket.wait_for_close());
  }
  RawSocket socket(bench.server->port());
  socket.send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(socket.read_response().headers.at("connection"), "keep-alive");
  socket.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(socket.read_response().status, 200);
}

TEST(HttpServer, expect_continue_is_answered_before_the_body) {
  Bench bench;
  RawSocket socket(bench.server->port());
  socket.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(socket.read_response().status, 100);
  socket.send("hello");
  const RawResponse response = socket.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "hello");
}

TEST(HttpServer, refused_upload_still_reads_its_answer) {
  ServerConfig config;
  config.limits.body_bytes = 1000;
  Bench bench(config);
  RawSocket socket(bench.server->port());
  // Far more than the socket buffers hold: without lingering the client would get a reset instead of its 413.
  socket.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n");
  socket.send(std::string(20000000, 'x'));
  EXPECT_EQ(socket.read_response().status, 413);
}

TEST(HttpServer, slow_headers_slow_bodies_and_idle_connections_time_out) {
  ServerConfig config;
  config.head_timeout_seconds = 0.1;
  config.body_timeout_seconds = 0.1;
  config.idle_timeout_seconds = 0.2;
  Bench bench(config);
  RawSocket slow_head(bench.server->port());
  slow_head.send("GET /hello HTTP/1.1\r\n");
  RawSocket slow_body(bench.server->port());
  slow_body.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
  RawSocket idle(bench.server->port());
  EXPECT_EQ(slow_head.read_response().status, 408);
  EXPECT_EQ(slow_body.read_response().status, 408);
  EXPECT_TRUE(idle.wait_for_close());
  EXPECT_EQ(idle.input(), "");
  EXPECT_EQ(ask(bench.server->port(), "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
}

TEST(HttpServer, too_many_connections_get_503_and_room_comes_back) {
  ServerConfig config;
  config.max_connections = 2;
  Bench bench(config);
  auto first = std::make_unique<RawSocket>(bench.server->port());
  RawSocket second(bench.server->port());
  ASSERT_TRUE(eventually([&] { return bench.server->connections() == 2; }));
  RawSocket third(bench.server->port());
  EXPECT_EQ(third.read_response().status, 503);
  EXPECT_TRUE(third.wait_for_close());
  third.close();
  first.reset();
  ASSERT_TRUE(eventually([&] { return bench.server->connections() == 1; }));
  EXPECT_EQ(ask(bench.server->port(), "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
}

TEST(HttpServer, access_records_tell_what_happened) {
  Bench bench;
  ask(bench.server->port(), "GET /hello HTTP/1.1\r\nHost: x\r\nX-Request-Id: me\r\n\r\n");
  ask(bench.server->port(), "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(bench.mutex);
    return bench.accesses.size() == 2;
  }));
  EXPECT_EQ(bench.accesses[0].route, "/hello");
  EXPECT_EQ(bench.accesses[0].request_id, "me");
  EXPECT_EQ(bench.accesses[0].status, 200);
  EXPECT_EQ(bench.accesses[0].body_bytes, 5U);
  EXPECT_FALSE(bench.accesses[0].disconnected);
  EXPECT_EQ(bench.accesses[1].route, "");
  EXPECT_EQ(bench.accesses[1].status, 404);
}

}  // namespace
}  // namespace assay
