#include "base/units.h"

#include <array>
#include <charconv>
#include <cmath>

namespace assay {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 9> kByteUnits = {{{"B", 1},
                                             {"KB", 1e3},
                                             {"MB", 1e6},
                                             {"GB", 1e9},
                                             {"TB", 1e12},
                                             {"KiB", 1024.0},
                                             {"MiB", 1048576.0},
                                             {"GiB", 1073741824.0},
                                             {"TiB", 1099511627776.0}}};
constexpr std::array<Unit, 5> kTimeUnits = {{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}}};

struct Quantity {
  double value;
  std::string_view unit;
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Result<Quantity> split(std::string_view text) {
  const std::string_view trimmed = trim(text);
  const char* const last = trimmed.data() + trimmed.size();
  double value = 0;
  const auto [end, code] = std::from_chars(trimmed.data(), last, value);  // decimal, whatever the locale
  if (code != std::errc{} || !std::isfinite(value) || std::signbit(value)) {
    return fail(ErrorCode::kInvalidArgument, text, "expected a non-negative number with a unit");
  }
  return Quantity{value, trim({end, static_cast<size_t>(last - end)})};
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> names = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < kKiB) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::round(value) >= 1024 && unit + 1 < names.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, names[unit]);
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds < 0) return "-" + format_seconds(-seconds);
  // Three digits; a unit ends where its 999.5 would be printed as 1e+03.
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e9) return fmt::format("{:.3g} h", seconds / 3600);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

Result<uint64_t> parse_bytes(std::string_view text) {
  ASSIGN_OR_RETURN(const Quantity quantity, split(text));
  for (const Unit& unit : kByteUnits) {
    if (quantity.unit == unit.name || (quantity.unit.empty() && unit.name == "B")) {
      const double bytes = quantity.value * unit.factor;
      if (bytes >= 0x1p63) return fail(ErrorCode::kInvalidArgument, text, "is larger than 2^63 bytes");
      return static_cast<uint64_t>(std::llround(bytes));
    }
  }
  return fail(ErrorCode::kInvalidArgument, text,
              "unknown unit '{}'; use B, KB, MB, GB, TB, KiB, MiB, GiB or TiB", quantity.unit);
}

Result<double> parse_seconds(std::string_view text) {
  ASSIGN_OR_RETURN(const Quantity quantity, split(text));
  for (const Unit& unit : kTimeUnits) {
    if (quantity.unit == unit.name) return quantity.value * unit.factor;
  }
  return fail(ErrorCode::kInvalidArgument, text, "expected a duration with a unit: us, ms, s, min or h");
}

}  // namespace assay
