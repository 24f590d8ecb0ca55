// How the template engine fails inside itself: an exception, caught in chat_template.cpp and turned into an
// Error. It never crosses the public API. Internal to the template engine.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"

namespace assay::tokenizer_internal::jinja {

struct Failure : std::runtime_error {
  Failure(ErrorCode error_code, const std::string& what, int at_line = 0)
      : std::runtime_error(what), code(error_code), line(at_line) {}

  ErrorCode code;
  int line;  // 0: not known here, the interpreter's current line applies
};

// The template does something that its language forbids, found while parsing.
template <class... Args>
[[noreturn]] void fail_syntax(int line, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(ErrorCode::kCorrupt, fmt::format(format, std::forward<Args>(args)...), line);
}

// The template and the values it was given do not fit together.
template <class... Args>
[[noreturn]] void fail_render(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void fail_unsupported(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(ErrorCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void fail_limit(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(ErrorCode::kResourceExhausted, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace assay::tokenizer_internal::jinja
