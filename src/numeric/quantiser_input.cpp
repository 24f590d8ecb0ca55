#include "numeric/quantiser_input.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace assay::numeric_internal {
namespace {

constexpr float kLargest = 0x1p126F;

bool is_fit(float value) {
  return std::fabs(value) <= kLargest;
}

// Index of the first value that is NaN, infinite or too large; values.size() when there is none.
size_t find_unfit(std::span<const float> values) {
  uint32_t largest = 0;  // as integers, magnitudes have the order of the floats, with infinity and NaN on top
  for (const float value : values) largest = std::max(largest, std::bit_cast<uint32_t>(value) & 0x7fffffffU);
  if (largest <= std::bit_cast<uint32_t>(kLargest)) return values.size();
  return static_cast<size_t>(std::ranges::find_if_not(values, is_fit) - values.begin());
}

}  // namespace

std::unexpected<Error> refuse_shape(int64_t rows, int64_t cols, uint64_t found, std::string_view unit) {
  return fail(ErrorCode::kInvalidArgument, "integer groups", "[{}, {}] does not fit the {} {} given", rows,
              cols, found, unit);
}

// rows * cols when both are sensible and the product fits.
bool count_values(int64_t rows, int64_t cols, uint64_t& count) {
  if (rows < 0 || cols < 0) return false;
  return !__builtin_mul_overflow(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), &count);
}

IntegerGroups allocate_groups(Format format, int group, int64_t rows, int64_t cols) {
  IntegerGroups groups;
  groups.format = format;
  groups.group = group;
  groups.rows = rows;
  groups.cols = cols;
  const auto n_groups = static_cast<size_t>(rows * groups.groups_per_row());
  groups.codes.resize(static_cast<size_t>(rows * cols));
  groups.scales.resize(n_groups);
  groups.minimums.resize(n_groups);
  return groups;
}

Result<void> check_quantiser_input(std::span<const float> values, int64_t rows, int64_t cols, Format format,
                                   int group) {
  if (!is_integer(format)) {
    return fail(ErrorCode::kInvalidArgument, "integer groups", "expected int8 or int4, found {}",
                name(format));
  }
  if (group <= 0 || (group != 16 && group % 32 != 0)) {
    return fail(ErrorCode::kInvalidArgument, "integer groups",
                "expected a group of 16 or of a multiple of 32 values, found {}", group);
  }
  uint64_t count = 0;
  if (!count_values(rows, cols, count) || count != values.size()) {
    return refuse_shape(rows, cols, values.size(), "values");
  }
  if (const size_t unfit = find_unfit(values); unfit < values.size()) {
    const auto at = static_cast<int64_t>(unfit);
    return fail(ErrorCode::kInvalidArgument, "integer groups",
                "row {}, column {}: {} cannot be quantised; expected a finite value of magnitude up to 2^126",
                at / cols, at % cols, values[unfit]);
  }
  return {};
}

}  // namespace assay::numeric_internal
