#include "http/server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "base/random.h"
#include "http/raw_socket.h"

namespace assay {
namespace {

using testing::RawResponse;
using testing::RawSocket;

bool eventually(const std::function<bool()>& condition, double seconds = 10) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

// Routes that tests steer: what a handler was given and the responders it has kept.
struct Bench {
  std::atomic<int> calls{0};
  std::atomic<int> disconnects{0};
  std::mutex mutex;
  std::vector<std::shared_ptr<Responder>> kept;
  std::vector<AccessRecord> accesses;
  std::unique_ptr<HttpServer> server;

  explicit Bench(ServerConfig config = {}) {
    config.on_access = [this](const AccessRecord& record) {
      const std::scoped_lock lock(mutex);
      accesses.push_back(record);
    };
    auto started = HttpServer::start(std::move(config), routes());
    if (!started) ADD_FAILURE() << started.error().message();
    server = std::move(*started);
  }
  ~Bench() {
    kept.clear();
    server.reset();
  }

  std::vector<HttpServer::Route> routes() {
    std::vector<HttpServer::Route> all;
    all.push_back({"GET", "/hello", [this](HttpRequest, std::shared_ptr<Responder> responder) {
                     ++calls;
                     responder->respond(text_response(200, "hello"));
                   }});
    all.push_back({"POST", "/echo", [this](HttpRequest request, std::shared_ptr<Responder> responder) {
                     ++calls;
                     responder->respond(text_response(200, request.body));
                   }});
    all.push_back({"GET", "/names/{name...}", [](HttpRequest request, std::shared_ptr<Responder> responder) {
                     responder->respond(text_response(200, std::string(request.path_parameter("name"))));
                   }});
    all.push_back({"POST", "/keep", [this](HttpRequest, std::shared_ptr<Responder> responder) {
                     ++calls;
                     responder->on_disconnect([this] { ++disconnects; });
                     const std::scoped_lock lock(mutex);
                     kept.push_back(std::move(responder));
                   }});
    all.push_back({"GET", "/forget", [](HttpRequest, std::shared_ptr<Responder>) {}});
    all.push_back(
        {"GET", "/throw", [](HttpRequest, std::shared_ptr<Responder>) { throw std::runtime_error("oops"); }});
    all.push_back({"GET", "/headers", [](HttpRequest request, std::shared_ptr<Responder> responder) {
                     std::string text = request.query + "|" + request.request_id;
                     for (const Header& field : request.headers)
                       text += "\n" + field.name + "=" + field.value;
                     responder->respond(text_response(200, text));
                   }});
    return all;
  }

  std::shared_ptr<Responder> wait_kept(size_t index) {
    eventually([&] {
      const std::scoped_lock lock(mutex);
      return kept.size() > index;
    });
    const std::scoped_lock lock(mutex);
    return kept.at(index);
  }
};

std::string post(std::string_view path, std::string_view body, std::string_view more = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{}", path, more, body.size(),
                     body);
}

RawResponse ask(uint16_t port, std::string_view bytes, bool head_only = false) {
  RawSocket socket(port);
  socket.send(bytes);
  return socket.read_response(10, head_only);
}

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
