// The plain values that HTTP/1.1 servers and clients exchange. Source: RFC 9110, RFC 9112.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

struct Header {
  std::string name;
  std::string value;
};

// Header fields in order of arrival; names compare without case. Cost: linear, messages have few.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Header> fields) : fields_(fields) {}

  void add(std::string_view name, std::string_view value) {
    fields_.emplace_back(std::string(name), std::string(value));
  }
  void set(std::string_view name, std::string_view value);  // replaces every field of that name
  void remove(std::string_view name);
  std::optional<std::string_view> find(std::string_view name) const;  // the first
  int count(std::string_view name) const;

  size_t size() const { return fields_.size(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<Header> fields_;
};

// ASCII case-insensitive equality, as header names and schemes compare.
bool equals_ignoring_case(std::string_view a, std::string_view b);

struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // as sent: "/v1/models/x%20y?limit=2"
  std::string path;    // the target's path, still percent-encoded: "/v1/models/x%20y"
  std::string query;   // after the question mark, still encoded
  Headers headers;
  std::string body;
  std::string peer;        // "127.0.0.1:51234"
  std::string request_id;  // the client's X-Request-Id when it is well-formed, else generated
  // Decoded values of the route's {placeholders}, in order.
  std::vector<std::pair<std::string, std::string>> path_parameters;
  bool http_1_0 = false;

  std::string_view path_parameter(std::string_view name) const;  // empty when there is none
};

struct HttpResponse {
  int status = 200;
  Headers headers;  // Content-Length, Connection, Date and X-Request-Id are added by the server
  std::string body;
};

HttpResponse text_response(int status, std::string body,
                           std::string_view content_type = "text/plain; charset=utf-8");

// "Not Found"; "Unknown" for codes without a registered reason.
std::string_view reason_phrase(int status);

// What an HTTP server's own failure of that status is called: 404 "unknown_url", 405 "method_not_allowed",
// 408 "request_timeout", ...; "bad_request" and "internal_error" for the others below and from 500.
std::string_view error_code_of(int status);

// 1..128 characters of [A-Za-z0-9._:-]: what is accepted as X-Request-Id (safe in logs and headers).
bool is_valid_request_id(std::string_view id);
std::string make_request_id();  // "req-" and 32 hexadecimal digits of system randomness

}  // namespace assay
