// Integer groups: the form in which int8 and int4 weights are executed, and into which every integer block
// type of GGUF converts without loss.
//
//   value[r][c] = scale[r][c / group] * code[r][c] + minimum[r][c / group]
//
// Codes are unsigned: 0..15 (int4) or 0..255 (int8). A symmetric int8 value q in [-128, 127] is stored as q +
// 128 with minimum = -128 * scale, q4_0 as its nibble with minimum = -8 * scale. Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "numeric/block_type.h"
#include "numeric/format.h"

namespace assay {

struct IntegerGroups {
  Format format = Format::kInt8;  // kInt8 or kInt4
  int group = 32;                 // 16, or a multiple of 32
  int64_t rows = 0;
  int64_t cols = 0;  // a row's last group may be short
  // True when every minimum is -zero_point * scale for one zero point (8 for q4_0, 128 for q8_0): kernels
  // then correct in exact integers. Negative: general minimum.
  int zero_point = -1;
  std::vector<uint8_t> codes;   // [rows, cols], one code per byte
  std::vector<float> scales;    // [rows, ceil(cols / group)]
  std::vector<float> minimums;  // same shape

  int64_t groups_per_row() const { return (cols + group - 1) / group; }
};

// True for the block types that convert below: Q4_0 Q4_1 Q2_K Q3_K Q4_K -> int4; Q5_0 Q5_1 Q8_0 Q5_K Q6_K
// IQ4_NL IQ4_XS MXFP4 -> int8. decode() and the converted groups give the same real values, up to one
// rounding of scale * code + minimum in f32.
bool has_integer_form(BlockType type);
Result<IntegerGroups> to_integer_groups(BlockType type, std::span<const std::byte> src, int64_t rows,
                                        int64_t cols);

// Round-to-nearest quantisers, one scale (and minimum) per group along a row.
enum class GroupScheme { kSymmetric, kAsymmetric };
// NaN or infinity in `values` is kInvalidArgument, naming row and column. values: [rows, cols].
Result<IntegerGroups> quantise_groups(std::span<const float> values, int64_t rows, int64_t cols,
                                      Format format, int group, GroupScheme scheme);

// One row back to f32. dst: [cols].
void dequantise_row(const IntegerGroups& groups, int64_t row, std::span<float> dst);

}  // namespace assay
