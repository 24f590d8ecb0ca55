#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>

namespace assay {
namespace {

constexpr std::array<spdlog::level::level_enum, 5> kLevels = {
    spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err, spdlog::level::off};
static_assert(kLevels.size() == static_cast<size_t>(LogLevel::kCount));

spdlog::logger& logger() {
  static const auto instance = [] {
    auto created = spdlog::stderr_color_mt("assay");
    created->set_pattern("%H:%M:%S.%e %^%l%$ %v");
    return created;
  }();
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) {
  logger().set_level(kLevels.at(static_cast<size_t>(level)));
}

void log_message(LogLevel level, std::string_view text) {
  logger().log(kLevels.at(static_cast<size_t>(level)), "{}", text);
}

}  // namespace assay
