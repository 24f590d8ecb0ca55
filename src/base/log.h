// Process-wide log to standard error (spdlog). Libraries do not log their results; they return them. Only the
// long-running parts (engine, serve, tune) use it, for events an operator wants to see. Thread safe.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace assay {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff, kCount };

void set_log_level(LogLevel level);
void log_message(LogLevel level, std::string_view text);

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace assay
