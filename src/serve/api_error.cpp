#include "serve/api_error.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "serve/utf8_text.h"

namespace assay {
namespace {

namespace json = boost::json;

json::value text_or_null(std::string_view text) {
  return text.empty() ? json::value(nullptr) : json::value(json::string(text));
}

}  // namespace

// Messages quote what clients sent, paths for instance, which may be any bytes.
std::string to_json(const ApiError& error) {
  return json::serialize(json::object{{"error", json::object{{"message", replace_invalid_utf8(error.message)},
                                                             {"type", error.type},
                                                             {"param", text_or_null(error.param)},
                                                             {"code", text_or_null(error.code)}}}});
}

HttpResponse json_response(int status, std::string body) {
  return text_response(status, std::move(body), "application/json");
}

HttpResponse to_response(const ApiError& error) {
  HttpResponse response = json_response(error.status, to_json(error));
  for (const Header& field : error.headers) response.headers.add(field.name, field.value);
  if (error.retry_after_seconds) {
    response.headers.add("Retry-After", std::to_string(*error.retry_after_seconds));
  }
  return response;
}

ApiError http_failure(int status, std::string_view code, std::string_view message) {
  ApiError error{.status = status, .message = std::string(message), .code = std::string(code)};
  if (status >= 500) error.type = "server_error";
  if (status == 429) error.type = "rate_limit_error";
  if (status == 403) error.type = "permission_error";
  if (status == 429 || status == 503) error.retry_after_seconds = 1;
  return error;
}

ApiError engine_failure(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
    case ErrorCode::kNotFound:
    case ErrorCode::kCorrupt:
      return {.status = 400, .message = error.message(), .code = "invalid_value"};
    case ErrorCode::kResourceExhausted:
      return {.status = 429,
              .message = "the server has as many requests as it can queue; try again later (" +
                         error.message() + ")",
              .type = "rate_limit_error",
              .code = "queue_full",
              .retry_after_seconds = 1};
    case ErrorCode::kUnavailable:
    case ErrorCode::kCancelled:
      return {.status = 503,
              .message = "the server is shutting down",
              .type = "server_error",
              .code = "shutting_down",
              .retry_after_seconds = 5};
    case ErrorCode::kIo:
    case ErrorCode::kNetwork:
    case ErrorCode::kInternal:
    case ErrorCode::kCount:
      break;
  }
  return {.status = 500, .message = error.message(), .type = "server_error", .code = "internal_error"};
}

}  // namespace assay
