// A block of an integer block type, taken apart: the one reading of the layouts that decode() (block_type.h)
// and to_integer_groups() (integer_groups.h) share. Internal to numeric.
//
//   value[i] = scales[i / group] * (codes[i] - offset)            offset >= 0
//   value[i] = scales[i / group] * codes[i] + minimums[i / group]  offset < 0
//
// Every product is exact in f32: f16 scales have 11 significant bits, integer sub-scales at most 7, codes at
// most 8, and no type has more than 24 in all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "numeric/block_type.h"
#include "numeric/format.h"

namespace assay::numeric_internal {

struct BlockParts {
  std::array<uint8_t, 256> codes;
  std::array<float, 16> scales;
  std::array<float, 16> minimums;
};

struct IntegerBlock {
  Format format;  // the smallest integer format that holds the codes
  int group;      // values that share a scale
  int offset;     // the code of zero; -1 where groups have minimums instead
  void (*take_apart)(const std::byte* block, BlockParts& parts);
};

// nullptr for plain element types.
const IntegerBlock* integer_block(BlockType type);

}  // namespace assay::numeric_internal
