#include "base/error.h"

#include <array>

namespace assay {
namespace {

constexpr std::array<std::string_view, 10> kNames = {
    "invalid argument", "not found", "corrupt",   "unsupported", "input/output",
    "network",          "exhausted", "cancelled", "unavailable", "internal"};
static_assert(kNames.size() == static_cast<size_t>(ErrorCode::kCount));

}  // namespace

std::string_view name(ErrorCode code) {
  return kNames.at(static_cast<size_t>(code));
}

std::string Error::message() const {
  return where.empty() ? what : where + ": " + what;
}

Error Error::within(std::string_view outer) const {
  return {code, where.empty() ? std::string(outer) : std::string(outer) + ": " + where, what};
}

}  // namespace assay
