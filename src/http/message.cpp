#include "http/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace assay {
namespace {

char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return to_lower(x) == to_lower(y); });
}

void Headers::set(std::string_view name, std::string_view value) {
  remove(name);
  add(name, value);
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [&](const Header& field) { return equals_ignoring_case(field.name, name); });
}

std::optional<std::string_view> Headers::find(std::string_view name) const {
  for (const Header& field : fields_) {
    if (equals_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

int Headers::count(std::string_view name) const {
  return static_cast<int>(std::count_if(fields_.begin(), fields_.end(), [&](const Header& field) {
    return equals_ignoring_case(field.name, name);
  }));
}

std::string_view HttpRequest::path_parameter(std::string_view name) const {
  for (const auto& [key, value] : path_parameters) {
    if (key == name) return value;
  }
  return {};
}

HttpResponse text_response(int status, std::string body, std::string_view content_type) {
  HttpResponse response{.status = status, .headers = {}, .body = std::move(body)};
  response.headers.add("Content-Type", content_type);
  return response;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string_view error_code_of(int status) {
  switch (status) {
    case 403:
      return "origin_not_allowed";
    case 404:
      return "unknown_url";
    case 405:
      return "method_not_allowed";
    case 408:
      return "request_timeout";
    case 413:
      return "request_too_large";
    case 417:
      return "unsupported_expectation";
    case 429:
    case 503:
      return "too_many_connections";
    case 431:
      return "headers_too_large";
    case 501:
      return "unsupported_transfer_encoding";
    default:
      return status >= 500 ? "internal_error" : "bad_request";
  }
}

bool is_valid_request_id(std::string_view id) {
  if (id.empty() || id.size() > 128) return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
  });
}

std::string make_request_id() {
  thread_local std::random_device device;
  return fmt::format("req-{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace assay
