#include "numeric/integer_groups.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "numeric/block_parts.h"
#include "numeric/quantiser_input.h"

namespace assay {
namespace {

using numeric_internal::BlockParts;
using numeric_internal::IntegerBlock;
using numeric_internal::allocate_groups;
using numeric_internal::check_quantiser_input;
using numeric_internal::count_values;
using numeric_internal::refuse_shape;

// Scales are normal numbers, so that their reciprocals are finite.
constexpr float kSmallestScale = 0x1p-126F;

struct Range {
  float low;
  float high;
};

// A float as an integer with the same order, and back: its own inverse. Integer minima and maxima vectorise,
// those of floats do not, for the sake of NaN and signed zeros.
int32_t ordered(int32_t bits) {
  return bits ^ (bits < 0 ? 0x7fffffff : 0);
}

Range range_of(std::span<const float> values) {
  int32_t low = INT32_MAX;
  int32_t high = INT32_MIN;
  for (const float value : values) {
    const int32_t key = ordered(std::bit_cast<int32_t>(value));
    low = std::min(low, key);
    high = std::max(high, key);
  }
  return {std::bit_cast<float>(ordered(low)), std::bit_cast<float>(ordered(high))};
}

// To the nearest integer, ties to even, for |value| < 2^22: the f32 adder rounds.
int round_to_int(float value) {
  constexpr float kRounder = 0x1.8p23F;
  return std::bit_cast<int>(value + kRounder) - std::bit_cast<int>(kRounder);
}

// value ~ scale * (code - zero), |code - zero| <= half.
float quantise_symmetric(std::span<const float> values, int zero, int half, uint8_t* __restrict codes) {
  const Range range = range_of(values);
  const float largest = std::max(-range.low, range.high);
  if (largest == 0) {
    std::fill_n(codes, values.size(), static_cast<uint8_t>(zero));
    return 0;
  }
  const float scale = std::max(largest / static_cast<float>(half), kSmallestScale);
  const float inverse = 1 / scale;
  for (size_t i = 0; i < values.size(); ++i) {
    const int code = std::clamp(round_to_int(values[i] * inverse), -half, half);
    codes[i] = static_cast<uint8_t>(zero + code);
  }
  return scale;
}

struct Affine {
  float scale;
  float minimum;
};

// value ~ scale * code + minimum, code in [0, levels].
Affine quantise_asymmetric(std::span<const float> values, int levels, uint8_t* __restrict codes) {
  const Range range = range_of(values);
  if (range.low == range.high) {
    std::fill_n(codes, values.size(), uint8_t{0});
    return {0, range.low};
  }
  const float scale = std::max((range.high - range.low) / static_cast<float>(levels), kSmallestScale);
  const float inverse = 1 / scale;
  for (size_t i = 0; i < values.size(); ++i) {
    const int code = std::min(round_to_int((values[i] - range.low) * inverse), levels);
    codes[i] = static_cast<uint8_t>(code);
  }
  return {scale, range.low};
}

}  // namespace

bool has_integer_form(BlockType type) {
  return numeric_internal::integer_block(type) != nullptr;
}

Result<IntegerGroups> to_integer_groups(BlockType type, std::span<const std::byte> src, int64_t rows,
                                        int64_t cols) {
  const IntegerBlock* kind = numeric_internal::integer_block(type);
  if (kind == nullptr) {
    return fail(ErrorCode::kUnsupported, name(type), "has no integer form");
  }
  const BlockLayout shape = layout(type);
  uint64_t count = 0;
  if (!count_values(rows, cols, count)) return refuse_shape(rows, cols, src.size(), "bytes");
  if (cols % shape.values != 0) {
    return fail(ErrorCode::kInvalidArgument, name(type), "expected rows of a multiple of {} values, found {}",
                shape.values, cols);
  }
  ASSIGN_OR_RETURN(const uint64_t bytes, stored_bytes(type, count));
  if (bytes != src.size()) return refuse_shape(rows, cols, src.size(), "bytes");

  IntegerGroups groups = allocate_groups(kind->format, kind->group, rows, cols);
  groups.zero_point = kind->offset;
  const auto values = static_cast<size_t>(shape.values);
  const size_t groups_per_block = values / static_cast<size_t>(kind->group);
  BlockParts parts{};
  for (size_t block = 0; block < count / values; ++block) {
    kind->take_apart(src.data() + block * static_cast<size_t>(shape.bytes), parts);
    std::copy_n(parts.codes.data(), values, groups.codes.data() + block * values);
    for (size_t i = 0; i < groups_per_block; ++i) {
      const float scale = parts.scales[i];
      const float minimum = kind->offset >= 0 ? -static_cast<float>(kind->offset) * scale : parts.minimums[i];
      if (!std::isfinite(scale) || !std::isfinite(minimum)) {
        const auto at = static_cast<int64_t>(block * values);
        return fail(ErrorCode::kCorrupt, name(type), "row {}, column {}: the block's scale is not finite",
                    at / cols, at % cols);
      }
      groups.scales[block * groups_per_block + i] = scale;
      groups.minimums[block * groups_per_block + i] = minimum;
    }
  }
  return groups;
}

Result<IntegerGroups> quantise_groups(std::span<const float> values, int64_t rows, int64_t cols,
                                      Format format, int group, GroupScheme scheme) {
  RETURN_IF_ERROR(check_quantiser_input(values, rows, cols, format, group));
  IntegerGroups groups = allocate_groups(format, group, rows, cols);
  const bool symmetric = scheme == GroupScheme::kSymmetric;
  const int levels = (1 << bits(format)) - 1;
  const int half = levels / 2;
  const int zero = half + 1;
  if (symmetric) groups.zero_point = zero;
  size_t index = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; col += group, ++index) {
      const auto start = static_cast<size_t>(row * cols + col);
      const auto part = values.subspan(start, static_cast<size_t>(std::min<int64_t>(group, cols - col)));
      uint8_t* codes = groups.codes.data() + start;
      if (symmetric) {
        groups.scales[index] = quantise_symmetric(part, zero, half, codes);
        groups.minimums[index] = -static_cast<float>(zero) * groups.scales[index];
      } else {
        const Affine affine = quantise_asymmetric(part, levels, codes);
        groups.scales[index] = affine.scale;
        groups.minimums[index] = affine.minimum;
      }
    }
  }
  return groups;
}

void dequantise_row(const IntegerGroups& groups, int64_t row, std::span<float> dst) {
  CHECK(row >= 0 && row < groups.rows);
  CHECK_OP(static_cast<int64_t>(dst.size()), ==, groups.cols);
  const uint8_t* codes = groups.codes.data() + row * groups.cols;
  const auto first = static_cast<size_t>(row * groups.groups_per_row());
  const auto group = static_cast<size_t>(groups.group);
  for (size_t start = 0, i = first; start < dst.size(); start += group, ++i) {
    const size_t end = std::min(start + group, dst.size());
    const float scale = groups.scales[i];
    const float minimum = groups.minimums[i];
    if (groups.zero_point >= 0) {  // exact even where scale * code alone would overflow
      for (size_t col = start; col < end; ++col)
        dst[col] = scale * static_cast<float>(codes[col] - groups.zero_point);
    } else {
      for (size_t col = start; col < end; ++col) dst[col] = scale * static_cast<float>(codes[col]) + minimum;
    }
  }
}

}  // namespace assay
