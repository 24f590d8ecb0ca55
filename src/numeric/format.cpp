#include "numeric/format.h"

#include <fmt/ranges.h>

#include <array>

namespace assay {
namespace {

struct FormatFacts {
  std::string_view name;
  int bits;
};

constexpr std::array<FormatFacts, kFormatCount> kFacts = {
    {{"f32", 32}, {"f16", 16}, {"bf16", 16}, {"fp8_e4m3", 8}, {"fp8_e5m2", 8}, {"int8", 8}, {"int4", 4}}};
static_assert(kFacts.back().bits == 4, "one row per format");

}  // namespace

std::string_view name(Format format) {
  return kFacts.at(static_cast<size_t>(format)).name;
}

int bits(Format format) {
  return kFacts.at(static_cast<size_t>(format)).bits;
}

Result<Format> parse_format(std::string_view text) {
  for (size_t i = 0; i < kFacts.size(); ++i) {
    if (kFacts[i].name == text) return static_cast<Format>(i);
  }
  std::array<std::string_view, kFormatCount> names;
  for (size_t i = 0; i < kFacts.size(); ++i) names[i] = kFacts[i].name;
  return fail(ErrorCode::kInvalidArgument, "format", "'{}' is not a format; expected one of {}", text,
              fmt::join(names, ", "));
}

}  // namespace assay
