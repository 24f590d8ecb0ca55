#include "http/client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "http/scripted_server.h"
#include "http/server.h"

namespace assay {
namespace {

using testing::ScriptedServer;
using testing::TestCertificate;

std::unique_ptr<HttpServer> start(std::vector<HttpServer::Route> routes) {
  auto server = HttpServer::start({}, std::move(routes));
  EXPECT_TRUE(server.has_value());
  return std::move(*server);
}

std::string url_of(const HttpServer& server, std::string_view path) {
  return fmt::format("http://{}{}", server.address(), path);
}

TEST(Fetch, get_and_post_carry_method_headers_and_body) {
  const auto server =
      start({{"GET", "/see",
              [](HttpRequest request, std::shared_ptr<Responder> responder) {
                responder->respond(text_response(
                    201, fmt::format("{}|{}|{}", request.query, request.headers.find("X-A").value_or("none"),
                                     request.headers.find("Host").value_or("none"))));
              }},
             {"POST", "/echo", [](HttpRequest request, std::shared_ptr<Responder> responder) {
                responder->respond(text_response(200, request.body));
              }}});
  const auto seen = fetch({.url = url_of(*server, "/see?q=1"), .headers = {{"X-A", "b"}}});
  ASSERT_TRUE(seen.has_value()) << seen.error().message();
  EXPECT_EQ(seen->status, 201);
  EXPECT_EQ(seen->body, "q=1|b|" + server->address());
  EXPECT_EQ(seen->headers.find("content-type"), "text/plain; charset=utf-8");
  Random random(1, "body");
  std::string body(3'000'000, 0);
  for (char& c : body) c = static_cast<char>(random.below(256));
  const auto echoed = fetch({.url = url_of(*server, "/echo"), .method = "POST", .body = body});
  ASSERT_TRUE(echoed.has_value()) << echoed.error().message();
  EXPECT_TRUE(echoed->body == body);
  const auto missing = fetch({.url = url_of(*server, "/none")});
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->status, 404);
}

TEST(Fetch, head_has_no_body) {
  const auto server = start({{"GET", "/x", [](HttpRequest, std::shared_ptr<Responder> responder) {
                                responder->respond(text_response(200, "12345"));
                              }}});
  const auto response = fetch({.url = url_of(*server, "/x"), .method = "HEAD"});
  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_EQ(response->body, "");
  EXPECT_EQ(response->headers.find("Content-Length"), "5");
}

TEST(Fetch, redirects_are_followed_and_counted) {
  const auto redirect = [](int status, std::string location) {
    return [status, location](HttpRequest, std::shared_ptr<Responder> responder) {
      HttpResponse response{.status = status};
      response.headers.add("Location", location);
      responder->respond(response);
    };
  };
  const auto server = start({{"GET", "/a/start", redirect(302, "next")},
                             {"GET", "/a/next", redirect(308, "/end?x=1")},
                             {"GET", "/end",
                              [](HttpRequest request, std::shared_ptr<Responder> responder) {
                                responder->respond(text_response(200, "end " + request.query));
                              }},
                             {"GET", "/loop", redirect(301, "/loop")},
                             {"POST", "/post", redirect(302, "/end")},
                             {"GET", "/bad", redirect(302, "ftp://h/")}});
  const auto followed = fetch({.url = url_of(*server, "/a/start")});
  ASSERT_TRUE(followed.has_value()) << followed.error().message();
  EXPECT_EQ(followed->body, "end x=1");
  EXPECT_EQ(followed->url, url_of(*server, "/end?x=1"));
  EXPECT_EQ(fetch({.url = url_of(*server, "/a/start"), .max_redirects = 0})->status, 302);
  EXPECT_EQ(fetch({.url = url_of(*server, "/post"), .method = "POST"})->status, 302);
  EXPECT_EQ(fetch({.url = url_of(*server, "/loop")}).error().code, ErrorCode::kNetwork);
  EXPECT_EQ(fetch({.url = url_of(*server, "/bad")}).error().code, ErrorCode::kUnsupported);
}

TEST(Fetch, credentials_stay_with_their_origin) {
  ScriptedServer other({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"});
  ScriptedServer first(
      {fmt::format("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", other.url("/x"))});
  const auto response =
      fetch({.url = first.url(), .headers = {{"Authorization", "Bearer secret"}, {"Range", "bytes=1-"}}});
  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_NE(first.requests().at(0).find("Bearer secret"), std::string::npos);
  EXPECT_EQ(other.requests().at(0).find("secret"), std::string::npos);
  EXPECT_NE(other.requests().at(0).find("Range: bytes=1-"), std::string::npos);
}

TEST(Fetch, broken_answers_are_one_clear_error) {
  struct Case {
    const char* name;
    std::string answer;
    ErrorCode code;
  };
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::vector<Case> cases = {
      {"nothing", "", ErrorCode::kNetwork},
      {"not http", "SSH-2.0-OpenSSH_9\r\n\r\n", ErrorCode::kNetwork},
      {"cut head", "HTTP/1.1 200 OK\r\nContent-", ErrorCode::kNetwork},
      {"cut body", ok + "Content-Length: 10\r\n\r\n12345", ErrorCode::kNetwork},
      {"cut chunk", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nabc", ErrorCode::kNetwork},
      {"no last chunk", ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", ErrorCode::kNetwork},
      {"bad chunk", ok + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", ErrorCode::kNetwork},
      {"bad length", ok + "Content-Length: many\r\n\r\n", ErrorCode::kNetwork},
      {"too long", ok + "Content-Length: 5000\r\n\r\n", ErrorCode::kResourceExhausted},
      {"too long without length", ok + "\r\n" + std::string(5000, 'x'), ErrorCode::kResourceExhausted},
      {"too many chunks",
       ok + "Transfer-Encoding: chunked\r\n\r\n800\r\n" + std::string(2048, 'x') + "\r\n1\r\n",
       ErrorCode::kResourceExhausted},
      {"endless header", ok + "A: " + std::string(200'000, 'x'), ErrorCode::kResourceExhausted},
  };
  for (const Case& c : cases) {
    ScriptedServer server({c.answer});
    const auto response = fetch({.url = server.url(), .max_body_bytes = 2048});
    ASSERT_FALSE(response.has_value()) << c.name;
    EXPECT_EQ(response.error().code, c.code) << c.name << ": " << response.error().message();
    EXPECT_NE(response.error().message().find(std::to_string(server.port())), std::string::npos) << c.name;
  }
}

TEST(Fetch, answers_of_every_framing_are_read) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"HTTP/1.0 200 OK\r\n\r\nuntil close", "until close"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcEXTRA", "abc"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\nT: u\r\n\r\n",
       "abc"},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz", "z"},
      {"HTTP/1.1 204 No Content\r\n\r\n", ""},
  };
  for (const auto& [answer, body] : cases) {
    ScriptedServer server({answer});
    const auto response = fetch({.url = server.url()});
    ASSERT_TRUE(response.has_value()) << response.error().message();
    EXPECT_EQ(response->body, body);
  }
}

TEST(Fetch, bad_requests_are_refused_before_anything_is_sent) {
  EXPECT_EQ(fetch({.url = "nonsense"}).error().code, ErrorCode::kInvalidArgument);
  ScriptedServer server({"HTTP/1.1 200 OK\r\n\r\n"});
  EXPECT_EQ(fetch({.url = server.url(), .method = "GET /x"}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(fetch({.url = server.url(), .headers = {{"A", "b\r\nC: d"}}}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(fetch({.url = server.url(), .headers = {{"A:", "b"}}}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(server.requests().empty());
}

TEST(Fetch, refused_connection_and_silence_are_bounded) {
  uint16_t free_port = 0;
  {
    ScriptedServer gone({""});
    free_port = gone.port();
  }
  EXPECT_EQ(fetch({.url = fmt::format("http://127.0.0.1:{}/", free_port)}).error().code, ErrorCode::kNetwork);
  ScriptedServer silent({"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"}, true);
  const auto idle = fetch({.url = silent.url(), .idle_timeout_seconds = 0.1});
  ASSERT_FALSE(idle.has_value());
  EXPECT_EQ(idle.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(idle.error().message().find("timed out"), std::string::npos);
  const auto total = fetch({.url = silent.url(), .total_timeout_seconds = 0.1});
  ASSERT_FALSE(total.has_value());
  EXPECT_EQ(total.error().code, ErrorCode::kUnavailable);
}

TEST(Fetch, callbacks_stream_the_body_and_may_stop_it) {
  const std::string body(1'000'000, 'q');
  const auto server = start({{"GET", "/big", [&](HttpRequest, std::shared_ptr<Responder> responder) {
                                responder->respond(text_response(200, body));
                              }}});
  size_t received = 0;
  size_t pieces = 0;
  uint64_t announced = 0;
  FetchCallbacks callbacks;
  callbacks.on_head = [&](const ResponseHead& head) {
    announced = head.content_length.value_or(0);
    return true;
  };
  callbacks.on_body = [&](std::string_view piece) {
    received += piece.size();
    ++pieces;
    return true;
  };
  const auto whole = fetch({.url = url_of(*server, "/big")}, callbacks);
  ASSERT_TRUE(whole.has_value()) << whole.error().message();
  EXPECT_EQ(received, body.size());
  EXPECT_EQ(announced, body.size());
  EXPECT_GT(pieces, 1U);
  EXPECT_TRUE(whole->body.empty());
  callbacks.on_body = [](std::string_view) { return false; };
  EXPECT_EQ(fetch({.url = url_of(*server, "/big")}, callbacks).error().code, ErrorCode::kCancelled);
  callbacks.on_head = [](const ResponseHead&) { return false; };
  EXPECT_EQ(fetch({.url = url_of(*server, "/big")}, callbacks).error().code, ErrorCode::kCancelled);
}

TEST(FetchEvents, events_arrive_while_the_stream_is_open) {
  std::shared_ptr<Responder> kept;
  const auto server = start({{"POST", "/stream",
                              [&](HttpRequest, std::shared_ptr<Responder> responder) {
                                responder->start_stream(200, {{"Content-Type", "text/event-stream"}});
                                responder->send(to_sse("one"));
                                kept = std::move(responder);
                              }},
                             {"POST", "/refused", [](HttpRequest, std::shared_ptr<Responder> responder) {
                                responder->respond(text_response(429, "busy"));
                              }}});
  std::vector<std::string> seen;
  const FetchRequest request{.url = url_of(*server, "/stream"), .method = "POST", .body = "{}"};
  const auto response = fetch_events(request, [&](const SseEvent& event) {
    seen.push_back(event.data);
    // The server goes on only after the client has the first event: it cannot have been held back.
    if (seen.size() == 1) {
      kept->send(to_sse("two"));
      kept->finish();
    }
    return true;
  });
  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "two"}));
  const auto stopped = fetch_events(request, [](const SseEvent&) { return false; });
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  const auto refused =
      fetch_events({.url = url_of(*server, "/refused"), .method = "POST"}, [](const SseEvent&) {
        ADD_FAILURE() << "not an event stream";
        return true;
      });
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(refused->body, "busy");
  kept.reset();
}

class FetchTls : public ::testing::Test {
 protected:
  std::string write_pem(const TestCertificate& certificate) {
    path_ = std::filesystem::temp_directory_path() / fmt::format("assay-test-ca-{}.pem", ::getpid());
    EXPECT_TRUE(write_file_atomically(path_, certificate.pem()).has_value());
    return path_.string();
  }
  void TearDown() override {
    if (!path_.empty()) std::filesystem::remove(path_);
  }
  std::filesystem::path path_;
  const std::string answer_ = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret";
};

TEST_F(FetchTls, trusted_certificate_is_accepted) {
  const TestCertificate certificate("DNS:localhost,IP:127.0.0.1");
  ScriptedServer server({answer_}, false, &certificate);
  const std::string ca = write_pem(certificate);
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto response = fetch({.url = server.url("/", host), .ca_file = ca});
    ASSERT_TRUE(response.has_value()) << response.error().message();
    EXPECT_EQ(response->body, "secret");
  }
}

TEST_F(FetchTls, unknown_wrong_and_expired_certificates_are_refused) {
  const TestCertificate good("IP:127.0.0.1");
  const TestCertificate other_name("DNS:example.org");
  const TestCertificate expired("IP:127.0.0.1", true);
  struct Case {
    const char* name;
    const TestCertificate* certificate;
    bool trusted;
  };
  for (const Case& c : {Case{"unknown authority", &good, false}, Case{"another host's", &other_name, true},
                        Case{"expired", &expired, true}}) {
    ScriptedServer server({answer_}, false, c.certificate);
    const auto response = fetch({.url = server.url(), .ca_file = c.trusted ? write_pem(*c.certificate) : ""});
    ASSERT_FALSE(response.has_value()) << c.name;
    EXPECT_EQ(response.error().code, ErrorCode::kNetwork);
    EXPECT_NE(response.error().message().find("not trusted"), std::string::npos)
        << response.error().message();
    EXPECT_TRUE(server.requests().empty()) << c.name;
  }
}

TEST_F(FetchTls, redirect_down_to_http_is_refused) {
  ScriptedServer plain({answer_});
  const TestCertificate certificate("IP:127.0.0.1");
  ScriptedServer server(
      {fmt::format("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", plain.url())}, false,
      &certificate);
  const auto response = fetch({.url = server.url(), .ca_file = write_pem(certificate)});
  ASSERT_FALSE(response.has_value());
  EXPECT_NE(response.error().message().find("https"), std::string::npos);
  EXPECT_TRUE(plain.requests().empty());
}

TEST_F(FetchTls, plain_server_behind_https_is_an_error) {
  ScriptedServer plain({answer_});
  const auto response =
      fetch({.url = fmt::format("https://127.0.0.1:{}/", plain.port()), .connect_timeout_seconds = 0.5});
  ASSERT_FALSE(response.has_value());
}

}  // namespace
}  // namespace assay
