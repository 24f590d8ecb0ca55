// CHECK(condition) stops the process when an invariant is broken: a bug, never bad input (that is Result<T>).
// On in every build type. Cost: one predictable branch.
#pragma once

#include <fmt/core.h>

#include <string>

namespace assay {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail);

}  // namespace assay

#define CHECK(condition)                                         \
  do {                                                           \
    if (!(condition)) [[unlikely]]                               \
      ::assay::check_failed(__FILE__, __LINE__, #condition, {}); \
  } while (false)

// CHECK_OP(a, ==, b) prints both values.
#define CHECK_OP(a, op, b)                                              \
  do {                                                                  \
    const auto& assay_a = (a);                                          \
    const auto& assay_b = (b);                                          \
    if (!(assay_a op assay_b)) [[unlikely]]                             \
      ::assay::check_failed(__FILE__, __LINE__, #a " " #op " " #b,      \
                            fmt::format("{} vs {}", assay_a, assay_b)); \
  } while (false)
