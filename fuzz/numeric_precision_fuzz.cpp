// parse_precision takes any text; what it accepts prints to a text that gives the same precision again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "numeric/precision.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto precision = assay::parse_precision(text);
  if (!precision) {
    CHECK(precision.error().code == assay::ErrorCode::kInvalidArgument);
    CHECK(!precision.error().what.empty());
    return 0;
  }
  const auto again = assay::parse_precision(assay::to_string(*precision));
  CHECK(again.has_value());
  CHECK(*again == *precision);
  return 0;
}
