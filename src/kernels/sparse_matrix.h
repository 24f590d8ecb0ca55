// Int4 weight matrices of which some blocks of 16 outputs x 32 inputs are dropped, packed so that kernels neither
// read nor multiply what is not there.
//
// A tile of 16 outputs holds its kept blocks one after the other, ascending, each as packed_matrix.h has int4:
// [tile][kept block][4][16][4 bytes], 256 bytes a block. Groups run over kept blocks (numeric/sparse_groups.h):
// scales and minimums lie [tile][group][16]. PackedMatrix::blocks says where a tile starts and which inputs each
// block reads. Everything else about PackedMatrix holds; tile_bytes() and groups_per_row() do not apply.
//
// Product: y[r][o] = sum over the kept blocks of o's tile, ascending. Int8 activations: for each block d = sum
// code_w * code_x exactly in integers; over the blocks of a group t = sum scale_x * d and m = sum scale_x * sum
// code_x, one fused or rounded step per block; then y += scale_w * t, y += minimum * m. Other activations:
// weights are dequantised, products are added one input after the other.
#pragma once

#include "base/error.h"
#include "kernels/packed_matrix.h"
#include "numeric/sparse_groups.h"

namespace assay {

// kInvalidArgument when parts do not fit each other; kResourceExhausted when the memory cannot be had.
Result<PackedMatrix> pack_sparse(const SparseGroups& sparse);

// One output row back to f32, zeros in dropped blocks. dst: [n_inputs].
void unpack_sparse_row(const PackedMatrix& matrix, int64_t output, std::span<float> dst);

}  // namespace assay
