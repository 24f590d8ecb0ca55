// What a client is told when its request fails: OpenAI's error object and the HTTP status that goes with it.
// Source: OpenAI API reference, "Error codes". Plain values, pure functions.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace assay {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  // the field at fault, or empty
  std::string code;   // machine-readable, or empty
  std::optional<int> retry_after_seconds;
  Headers headers;  // further ones
};

template <class T>
using ApiResult = std::expected<T, ApiError>;

// {"error": {"message", "type", "param", "code"}}; absent param and code are null.
std::string to_json(const ApiError& error);
HttpResponse to_response(const ApiError& error);

// What the HTTP layer refuses by itself: unknown routes, wrong methods, limits, broken messages.
ApiError http_failure(int status, std::string_view code, std::string_view message);
// What the engine refuses or reports.
ApiError engine_failure(const Error& error);

// A JSON body with its content type.
HttpResponse json_response(int status, std::string body);

}  // namespace assay
