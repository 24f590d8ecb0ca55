#include "serve/hostile_requests.h"

namespace assay::testing {
namespace {

using Rows = std::vector<HostileRow>;
constexpr After kClosed = After::kClosed;
const std::string kHost = "Host: x\r\n";
const std::string kJson = "Content-Type: application/json\r\n";

// What would be answered as well if it were taken for a request of its own.
const std::string kSmuggled = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";

std::string get(const std::string& target, const std::string& headers = "") {
  return "GET " + target + " HTTP/1.1\r\n" + kHost + headers + "\r\n";
}
std::string line(const std::string& request_line) {
  return request_line + "\r\n" + kHost + "\r\n" + kSmuggled;
}

// A chat request whose headers and body are as given.
std::string chat_head(const std::string& headers, const std::string& rest) {
  return "POST /v1/chat/completions HTTP/1.1\r\n" + kHost + kJson + headers + "\r\n" + rest;
}
std::string chunks(const std::string& rest) {
  return chat_head("Transfer-Encoding: chunked\r\n", rest);
}
std::string size_of_good() {
  return std::to_string(Served::chat_body().size());
}
std::string good_chunk(const std::string& size_line_end = "\r\n") {
  return fmt::format("{:x}{}{}\r\n", Served::chat_body().size(), size_line_end, Served::chat_body());
}

void add_request_lines(Rows& rows) {
  const auto bad = [&](const std::string& name, const std::string& bytes) {
    rows.push_back({name, bytes, 400, "bad_request", kClosed});
  };
  bad("HTTP/0.9", "GET /health\r\n");
  bad("HTTP/0.9 with a header", "GET /health\r\nHost: x\r\n\r\n" + kSmuggled);
  bad("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  bad("HTTP/1.2", line("GET /health HTTP/1.2"));
  bad("HTTP/3", line("GET /health HTTP/3.0"));
  bad("lower-case version", line("GET /health http/1.1"));
  bad("version without minor", line("GET /health HTTP/1"));
  bad("version with spaces", line("GET /health HTTP/ 1.1"));
  bad("two spaces", line("GET  /health HTTP/1.1"));
  bad("tabs for spaces", line("GET\t/health\tHTTP/1.1"));
  bad("space after the version", line("GET /health HTTP/1.1 "));
  bad("space before the method", line(" GET /health HTTP/1.1"));
  bad("two empty lines first", "\r\n\r\n" + get("/health"));
  bad("no target", line("GET HTTP/1.1"));
  bad("space in the target", line("GET /hea lth HTTP/1.1"));
  bad("NUL in the target", line(std::string("GET /hea\0lth HTTP/1.1", 21)));
  bad("control byte in the target", line("GET /hea\x01lth HTTP/1.1"));
  bad("method with a colon", line("GE:T /health HTTP/1.1"));
  bad("method of bytes above 127", line("G\xc3\x84T /health HTTP/1.1"));
  bad("TLS hello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));
  bad("SSH banner", "SSH-2.0-OpenSSH_9.2p1\r\n");
  bad("authority form", line("CONNECT x:443 HTTP/1.1"));
  bad("asterisk form", line("OPTIONS * HTTP/1.1"));
  bad("another scheme", line("GET ftp://x/health HTTP/1.1"));
  bad("relative target", line("GET health HTTP/1.1"));
  rows.push_back({"one empty line first", "\r\n" + get("/health"), 200, ""});
  rows.push_back({"HTTP/1.0", "GET /health HTTP/1.0\r\n\r\n", 200, "", kClosed});
  rows.push_back({"HTTP/1.0 kept alive", "GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, ""});
  rows.push_back({"absolute form", get("http://x/health"), 200, ""});
  rows.push_back({"absolute form of another host", get("http://evil.example/health"), 200, ""});
  rows.push_back({"absolute form with user", get("https://user:secret@x/health"), 200, ""});
  rows.push_back(
      {"lower-case method", "get /health HTTP/1.1\r\n" + kHost + "\r\n", 405, "method_not_allowed"});
  rows.push_back({"long method", std::string(1000, 'A') + " /health HTTP/1.1\r\n" + kHost + "\r\n", 405,
                  "method_not_allowed"});
  rows.push_back({"endless method", std::string(40000, 'A'), 431, "headers_too_large", kClosed});
  rows.push_back({"endless target", "GET /" + std::string(40000, 'a'), 431, "headers_too_large", kClosed});
}

void add_targets(Rows& rows) {
  for (const char* target :
       {"//health", "/../health", "/./health", "/%2e%2e/health", "/health/", "/health%00", "/health;a=b",
        "/HEALTH", "/health%2f", "/\\health", "/health#part"}) {
    rows.push_back({std::string("target ") + target, get(target), 404, "unknown_url"});
  }
  for (const char* target : {"/v1/models/%zz", "/v1/models/%", "/v1/models/%4"}) {
    rows.push_back({std::string("escape ") + target, get(target), 400, "bad_request"});
  }
  for (const char* id :
       {"%00", "%0d%0aX-Injected:%201", "%ff%fe", "%3Cscript%3E", "..%2f..%2fetc%2fpasswd", "a/b/c"}) {
    rows.push_back(
        {std::string("model ") + id, get(std::string("/v1/models/") + id), 404, "model_not_found"});
  }
  rows.push_back({"long target", get("/" + std::string(20000, 'a')), 404, "unknown_url"});
  rows.push_back({"bytes above 127 in the target", get("/h\xc3\xa9\xff"), 404, "unknown_url"});
  rows.push_back({"query that means nothing", get("/health?%zz&&==&a[]=1"), 200, ""});
  rows.push_back({"long query", get("/health?" + std::string(20000, 'q')), 200, ""});
}

void add_headers(Rows& rows) {
  const auto bad = [&](const std::string& name, const std::string& headers) {
    rows.push_back({name, get("/health", headers) + kSmuggled, 400, "bad_request", kClosed});
  };
  bad("second host", "Host: y\r\n");
  bad("same host twice", kHost);
  bad("folded header", "A: b\r\n c\r\n");
  bad("folded with a tab", "A: b\r\n\tc\r\n");
  bad("space before the colon", "A : b\r\n");
  bad("space in a name", "A B: c\r\n");
  bad("empty name", ": b\r\n");
  bad("bracket in a name", "A(: b\r\n");
  bad("no colon", "Nonsense\r\n");
  bad("control byte in a value", "A: \x01\r\n");
  bad("DEL in a value", "A: \x7f\r\n");
  bad("NUL in a value", std::string("A: b\0c\r\n", 8));
  bad("bare CR in a value", "A: b\rContent-Length: 5\r\n");
  bad("bare LF in a value", "A: b\nContent-Length: 5\r\n");
  rows.push_back({"no host", "GET /health HTTP/1.1\r\n\r\n" + kSmuggled, 400, "bad_request", kClosed});
  for (const char* host : {"a b", "x/y", "x?y", "x#y", "user@x", "x\\y", "<x>"}) {
    rows.push_back({std::string("host ") + host,
                    "GET /health HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n" + kSmuggled, 400,
                    "bad_request", kClosed});
  }
  rows.push_back({"empty host", "GET /health HTTP/1.1\r\nHost:\r\n\r\n", 200, ""});
  rows.push_back({"IPv6 host", "GET /health HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200, ""});
  rows.push_back({"bytes above 127 in a value", get("/health", "A: \xff\xfe\xc3\x28\r\n"), 200, ""});
  rows.push_back({"header without a value", get("/health", "A:\r\n"), 200, ""});
  rows.push_back({"100 headers", get("/health", repeated("A: b\r\n", 99)), 200, ""});
  rows.push_back(
      {"101 headers", get("/health", repeated("A: b\r\n", 100)), 431, "headers_too_large", kClosed});
  rows.push_back({"long name", get("/health", std::string(20000, 'n') + ": v\r\n"), 200, ""});
  rows.push_back({"endless header", "GET /health HTTP/1.1\r\nA: " + std::string(40000, 'a'), 431,
                  "headers_too_large", kClosed});
  rows.push_back({"close", get("/health", "Connection: close\r\n"), 200, "", kClosed});
  rows.push_back(
      {"close among others", get("/health", "Connection: keep-alive, close\r\n"), 200, "", kClosed});
  rows.push_back({"upgrade to h2c", get("/health", "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"), 200, ""});
  rows.push_back({"upgrade to a web socket",
                  get("/health", "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"), 200, ""});
  rows.push_back({"forged request id", get("/health", "X-Request-Id: a\xc2\x85 b\r\n"), 200, ""});
  rows.push_back({"page of another origin",
                  "POST /v1/chat/completions HTTP/1.1\r\n" + kHost +
                      "Origin: https://evil.example\r\nContent-Length: " + size_of_good() + "\r\n\r\n" +
                      Served::chat_body(),
                  403, "origin_not_allowed"});
}

void add_lengths(Rows& rows) {
  const std::string good = Served::chat_body();
  for (const char* length : {"", "-1", "+5", "0x5", "5,5", "5, 6", "5 5", "5;", "1e1", "five", "5.0", "\"5\"",
                             "99999999999999999999", "18446744073709551616"}) {
    rows.push_back({std::string("length ") + length,
                    chat_head("Content-Length: " + std::string(length) + "\r\n", good + kSmuggled), 400,
                    "bad_request", kClosed});
  }
  rows.push_back({"two lengths", chat_head("Content-Length: 5\r\nContent-Length: 6\r\n", good + kSmuggled),
                  400, "bad_request", kClosed});
  rows.push_back({"the same length twice",
                  chat_head(repeated("Content-Length: " + size_of_good() + "\r\n", 2), good + kSmuggled), 400,
                  "bad_request", kClosed});
  rows.push_back({"length and chunks",
                  chat_head("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + kSmuggled),
                  400, "bad_request", kClosed});
  rows.push_back({"chunks and length",
                  chat_head("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n" + kSmuggled),
                  400, "bad_request", kClosed});
  rows.push_back({"length beyond the limit", chat_head("Content-Length: 100001\r\n", kSmuggled), 413,
                  "request_too_large", kClosed});
  rows.push_back({"largest number as length",
                  chat_head("Content-Length: 18446744073709551615\r\n", kSmuggled), 413, "request_too_large",
                  kClosed});
  rows.push_back(
      {"length in white space", chat_head("Content-Length: \t " + size_of_good() + " \r\n", good), 200, ""});
  rows.push_back(
      {"length with zeros first", chat_head("Content-Length: 000" + size_of_good() + "\r\n", good), 200, ""});
  rows.push_back({"get with a body", get("/health", "Content-Length: 5\r\n") + "hello", 200, ""});
  rows.push_back({"get with chunks",
                  get("/health", "Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\n\r\n", 200, ""});
  rows.push_back({"expectation",
                  chat_head("Expect: 100-continue\r\nContent-Length: " + size_of_good() + "\r\n", good), 200,
                  ""});
  rows.push_back({"strange expectation",
                  chat_head("Expect: 200-ok\r\nContent-Length: 5\r\n", "hello" + kSmuggled), 417,
                  "unsupported_expectation", kClosed});
  rows.push_back({"refused expectation", chat_head("Expect: 100-continue\r\nContent-Length: 100001\r\n", ""),
                  413, "request_too_large", kClosed});
}

void add_chunks(Rows& rows) {
  for (const char* coding : {"gzip", "identity", "xchunked", "chunked, chunked", "gzip, chunked",
                             "chunked, gzip", "chunked;q=1", "\"chunked\"", "chunked,"}) {
    rows.push_back({std::string("coding ") + coding,
                    chat_head("Transfer-Encoding: " + std::string(coding) + "\r\n", "0\r\n\r\n" + kSmuggled),
                    501, "unsupported_transfer_encoding", kClosed});
  }
  rows.push_back({"chunked twice",
                  chat_head(repeated("Transfer-Encoding: chunked\r\n", 2), "0\r\n\r\n" + kSmuggled), 400,
                  "bad_request", kClosed});
  rows.push_back(
      {"chunked in 1.0",
       "POST /v1/chat/completions HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + kSmuggled, 400,
       "bad_request", kClosed});
  for (const char* size : {"xyz", "-5", "0x5", " 5", "", "5g", "fffffffffffffffff", "+5"}) {
    rows.push_back({std::string("chunk size ") + size,
                    chunks(std::string(size) + "\r\nhello\r\n0\r\n\r\n" + kSmuggled), 400, "bad_request",
                    kClosed});
  }
  rows.push_back(
      {"chunk size beyond the limit", chunks("186a1\r\n" + kSmuggled), 413, "request_too_large", kClosed});
  rows.push_back(
      {"largest chunk size", chunks("ffffffffffffffff\r\n" + kSmuggled), 413, "request_too_large", kClosed});
  rows.push_back({"chunks beyond the limit together",
                  chunks(repeated("c350\r\n" + std::string(50000, ' ') + "\r\n", 2) + "1\r\n \r\n0\r\n\r\n"),
                  413, "request_too_large", kClosed});
  rows.push_back({"chunk longer than said", chunks("5\r\nhello!\r\n0\r\n\r\n" + kSmuggled), 400,
                  "bad_request", kClosed});
  rows.push_back(
      {"chunk shorter than said", chunks("5\r\nhell\r\n0\r\n\r\n" + kSmuggled), 400, "bad_request", kClosed});
  rows.push_back(
      {"size ended by LF alone", chunks("5\nhello\r\n0\r\n\r\n" + kSmuggled), 400, "bad_request", kClosed});
  rows.push_back(
      {"endless extension", chunks("5;" + std::string(40000, 'x')), 431, "headers_too_large", kClosed});
  rows.push_back({"endless trailer", chunks(good_chunk() + "0\r\nA: " + std::string(40000, 'x')), 431,
                  "headers_too_large", kClosed});
  rows.push_back({"trailer without a colon", chunks(good_chunk() + "0\r\nnonsense\r\n\r\n" + kSmuggled), 400,
                  "bad_request", kClosed});
  rows.push_back({"good chunks", chunks(good_chunk() + "0\r\n\r\n"), 200, ""});
  rows.push_back(
      {"capital coding", chat_head("Transfer-Encoding: CHUNKED\r\n", good_chunk() + "0\r\n\r\n"), 200, ""});
  rows.push_back({"extensions", chunks(good_chunk(";a=b;c=\"d\"\r\n") + "0;e\r\n\r\n"), 200, ""});
  rows.push_back({"trailers", chunks(good_chunk() + "0\r\nA: b\r\nC: d\r\n\r\n"), 200, ""});
  rows.push_back({"length as a trailer", chunks(good_chunk() + "0\r\nContent-Length: 5\r\n\r\n"), 400,
                  "bad_request", kClosed});
  rows.push_back({"zeros before a size", chunks("000000" + good_chunk() + "0000\r\n\r\n"), 200, ""});
  std::string single;
  for (const char c : Served::chat_body()) single += std::string("1\r\n") + c + "\r\n";
  rows.push_back({"chunks of one byte", chunks(single + "0\r\n\r\n"), 200, ""});
}

}  // namespace

std::vector<HostileRow> framing_rows() {
  Rows rows;
  add_request_lines(rows);
  add_targets(rows);
  add_headers(rows);
  add_lengths(rows);
  add_chunks(rows);
  return rows;
}

}  // namespace assay::testing
