#include "base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace assay {
namespace {

std::string logged(LogLevel level) {
  set_log_level(level);
  testing::internal::CaptureStderr();
  log_debug("debug {}", 1);
  log_info("info {}", 2);
  log_warning("warning {}", 3);
  log_error("error {}", 4);
  std::string text = testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::kInfo);
  return text;
}

TEST(Log, shows_the_chosen_level_and_above) {
  const std::string all = logged(LogLevel::kDebug);
  for (const char* part : {"debug 1", "info 2", "warning 3", "error 4"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part;
  }
  const std::string some = logged(LogLevel::kWarning);
  EXPECT_EQ(some.find("info 2"), std::string::npos);
  EXPECT_NE(some.find("warning 3"), std::string::npos);
  EXPECT_EQ(logged(LogLevel::kOff), "");
}

TEST(Log, does_not_interpret_what_it_is_given) {
  testing::internal::CaptureStderr();
  log_info("{}", "braces {} and % signs");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("braces {} and % signs"), std::string::npos);
}

}  // namespace
}  // namespace assay
