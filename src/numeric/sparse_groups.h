// Integer groups of a matrix of which some blocks are dropped (block_mask.h). A dropped block is zero and takes
// no part in any group: groups run over the kept blocks of a tile in ascending order, so that group / 32
// consecutive kept blocks share a scale wherever they lie. Storage and work are then exactly the kept share.
//
//   rank(tile, block) = kept blocks before it in its tile
//   value[r][c] = scale[r][g] * code[r][c] + minimum[r][g],  g = rank * 32 / group, or 0 in a dropped block
//
// Plain values; thread safe.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "numeric/block_mask.h"
#include "numeric/integer_groups.h"

namespace assay {

struct SparseGroups {
  BlockMask mask;
  // Codes [rows, cols], 0 in dropped blocks. Scales and minimums keep the dense shape [rows, ceil(cols /
  // group)], the entries behind a tile's last group 0. Int4 with a general minimum; group is a multiple of 32.
  IntegerGroups groups;
};

// values: [rows, cols]. `fit`: scale and minimum by least squares, weighted by column_moments (E[x^2], [cols] or
// empty) instead of the extremes. kInvalidArgument as quantise_groups(), and for a mask of another shape.
Result<SparseGroups> quantise_sparse(std::span<const float> values, const BlockMask& mask, int group, bool fit,
                                     std::span<const float> column_moments);

// One row back to f32. dst: [cols].
void dequantise_row(const SparseGroups& sparse, int64_t row, std::span<float> dst);

}  // namespace assay
