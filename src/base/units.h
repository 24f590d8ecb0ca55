// Sizes and durations for people. GiB is 2^30 bytes, GB is 10^9.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

// 1536 -> "1.50 KiB"; below 1 KiB "512 B".
std::string format_bytes(uint64_t bytes);
// 0.0000123 -> "12.3 us", 0.5 -> "500 ms", 75 -> "1 min 15 s".
std::string format_seconds(double seconds);
// "512 MiB", "2GiB", "1.5 GB", "4096" (bytes). Decimal, whatever the locale. Negative, unknown units and
// overflow are errors.
Result<uint64_t> parse_bytes(std::string_view text);
// "250 ms", "1.5s", "2 min", "30us". A bare number is refused: the unit must be said.
Result<double> parse_seconds(std::string_view text);

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr int64_t ceil_div(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace assay
