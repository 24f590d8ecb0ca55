#include "http/cors.h"

#include <gtest/gtest.h>

#include "http/steered_server.h"

namespace assay {
namespace {

using testing::ask;
using testing::Bench;
using testing::RawResponse;

HttpRequest from(std::string method, std::string origin, std::string host = "localhost:8080") {
  HttpRequest request{.method = std::move(method)};
  request.headers.add("Host", host);
  if (!origin.empty()) request.headers.add("Origin", origin);
  return request;
}

TEST(Cors, origins_that_no_browser_sends_are_refused) {
  for (const char* bad : {"", "example.org", "https://example.org/", "https://example.org/path", "ftp://x",
                          "https://user@example.org", "https://*.example.org", "HTTPS//x", "https://a b"}) {
    const auto checked = check_cors_policy({{bad}});
    ASSERT_FALSE(checked.has_value()) << bad;
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  }
  const auto good = check_cors_policy({{"*", "null", "https://Example.ORG:443", "http://[::1]:3000"}});
  ASSERT_TRUE(good.has_value()) << good.error().message();
  EXPECT_EQ(good->origins,
            (std::vector<std::string>{"*", "null", "https://example.org", "http://[::1]:3000"}));
}

TEST(Cors, off_means_no_headers_and_no_foreign_posts) {
  const CorsPolicy off;
  for (const char* method : {"GET", "HEAD", "OPTIONS"}) {
    const CorsVerdict verdict = judge_origin(off, from(method, "https://evil.example"), false);
    EXPECT_FALSE(verdict.refused) << method;
    EXPECT_EQ(verdict.headers.size(), 0U);
    EXPECT_FALSE(verdict.preflight.has_value());
  }
  for (const char* method : {"POST", "DELETE", "PUT"}) {
    EXPECT_TRUE(judge_origin(off, from(method, "https://evil.example"), false).refused) << method;
    EXPECT_TRUE(judge_origin(off, from(method, "null"), false).refused) << method;
    EXPECT_FALSE(judge_origin(off, from(method, ""), false).refused) << method;
  }
}

TEST(Cors, pages_of_the_server_itself_may_post) {
  const CorsPolicy off;
  struct Case {
    const char* origin;
    const char* host;
    bool secure;
    bool refused;
  };
  for (const Case& c :
       {Case{"http://localhost:8080", "localhost:8080", false, false},
        Case{"http://LOCALHOST:8080", "localhost:8080", false, false},
        Case{"https://chat.example", "chat.example", false, false},  // TLS taken off by a proxy
        Case{"https://chat.example", "chat.example:443", true, false},
        Case{"http://chat.example", "chat.example", true, true},
        Case{"http://localhost:3000", "localhost:8080", false, true},
        Case{"http://127.0.0.1:8080", "localhost:8080", false, true},
        Case{"http://localhost:8080.evil.example", "localhost:8080", false, true}}) {
    EXPECT_EQ(judge_origin(off, from("POST", c.origin, c.host), c.secure).refused, c.refused) << c.origin;
  }
}

TEST(Cors, listed_origin_is_answered_by_name_and_caches_are_told) {
  const CorsPolicy policy{{"https://chat.example"}};
  const CorsVerdict verdict = judge_origin(policy, from("POST", "https://chat.example"), false);
  EXPECT_FALSE(verdict.refused);
  EXPECT_EQ(verdict.headers.find("Access-Control-Allow-Origin"), "https://chat.example");
  EXPECT_EQ(verdict.headers.find("Vary"), "Origin");
  EXPECT_FALSE(verdict.headers.find("Access-Control-Allow-Credentials").has_value());
  EXPECT_EQ(judge_origin(policy, from("GET", ""), false).headers.find("Vary"), "Origin");
  const CorsVerdict other = judge_origin(policy, from("GET", "https://evil.example"), false);
  EXPECT_FALSE(other.headers.find("Access-Control-Allow-Origin").has_value());
  EXPECT_TRUE(judge_origin(policy, from("POST", "https://evil.example"), false).refused);
}

TEST(Cors, star_allows_all_without_credentials) {
  const CorsVerdict verdict = judge_origin({{"*"}}, from("POST", "https://any.example"), false);
  EXPECT_EQ(verdict.headers.find("Access-Control-Allow-Origin"), "*");
  EXPECT_FALSE(verdict.headers.find("Access-Control-Allow-Credentials").has_value());
}

TEST(Cors, preflight_names_methods_and_headers_over_the_wire) {
  ServerConfig config;
  config.cors.origins = {"https://chat.example"};
  Bench bench(config);
  const auto preflight = [&](const std::string& origin) {
    return ask(bench.server->port(),
               "OPTIONS /echo HTTP/1.1\r\nHost: x\r\nOrigin: " + origin +
                   "\r\nAccess-Control-Request-Method: POST\r\n"
                   "Access-Control-Request-Headers: authorization,content-type\r\n\r\n");
  };
  RawResponse allowed = preflight("https://chat.example");
  EXPECT_EQ(allowed.status, 204);
  EXPECT_EQ(allowed.headers["access-control-allow-origin"], "https://chat.example");
  EXPECT_EQ(allowed.headers["access-control-allow-methods"], "GET, HEAD, POST");
  EXPECT_NE(allowed.headers["access-control-allow-headers"].find("Authorization"), std::string::npos);
  EXPECT_EQ(allowed.headers["access-control-allow-headers"].find('*'), std::string::npos);
  EXPECT_EQ(allowed.headers["vary"], "Origin");
  RawResponse refused = preflight("https://evil.example");
  EXPECT_EQ(refused.status, 403);
  EXPECT_FALSE(refused.headers.contains("access-control-allow-origin"));
  EXPECT_EQ(bench.calls.load(), 0);
  RawResponse answer =
      ask(bench.server->port(), testing::post("/echo", "x", "Origin: https://chat.example\r\n"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["access-control-allow-origin"], "https://chat.example");
  RawResponse plain_options = ask(bench.server->port(), "OPTIONS /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(plain_options.status, 405);
  // Errors carry the headers too: a page must be able to read why it was refused.
  RawResponse missing =
      ask(bench.server->port(), "GET /nothing HTTP/1.1\r\nHost: x\r\nOrigin: https://chat.example\r\n\r\n");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.headers["access-control-allow-origin"], "https://chat.example");
}

}  // namespace
}  // namespace assay
