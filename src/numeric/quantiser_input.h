// What every integer quantiser asks of its input, and the groups it fills. Internal to numeric.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "numeric/integer_groups.h"

namespace assay::numeric_internal {

// False when a dimension is negative or the product does not fit; count = rows * cols.
bool count_values(int64_t rows, int64_t cols, uint64_t& count);
std::unexpected<Error> refuse_shape(int64_t rows, int64_t cols, uint64_t found, std::string_view unit);

// kInvalidArgument unless format is an integer, the group allowed, the shape that of the values, and every
// value finite and of magnitude up to 2^126: scale * code + minimum then cannot overflow.
Result<void> check_quantiser_input(std::span<const float> values, int64_t rows, int64_t cols, Format format,
                                   int group);

// Zero codes, scales and minimums of that shape.
IntegerGroups allocate_groups(Format format, int group, int64_t rows, int64_t cols);

}  // namespace assay::numeric_internal
