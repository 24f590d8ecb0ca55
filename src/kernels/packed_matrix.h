// A weight matrix in the order in which the kernels read it. Packed once at load; prefill (matrix x matrix)
// and decode (matrix x vector) read the same copy, and every instruction set reads the same order:
//
//   outputs in tiles of kTileRows = 16 lanes, inputs padded with zeros to a multiple of kColumnUnit = 32
//   f32             [tile][k][16]
//   f16, bf16       [tile][k / 2][16][2]
//   fp8, int8       [tile][k / 4][16][4]
//   int4            [tile][k / 8][16][4 bytes]; byte j of a lane holds code k + j (low nibble) and k + 4 + j
//   (high) scales          f16 or f32 [tile][group][16], zero for groups that lie wholly in the padding
//   minimums        like scales; absent when the matrix has one zero point
//
// One tile row of 64 bytes is one 512-bit register, two 256-bit ones, and one row of an AMX B tile. A lane is
// one output, so every output accumulates over k in one fixed order whatever the batch: batch invariance is
// by layout.
//
// Integer weights follow numeric/integer_groups.h: value = scale * code + minimum, codes unsigned; int8 codes
// are kept unsigned (u8 x s8 dot products). Rows past n_outputs and columns past n_inputs contribute exactly
// zero.
//
// Ownership: owns its buffers. Thread safety: immutable after packing.
#pragma once

#include <cstdint>
#include <span>

#include "base/aligned.h"
#include "base/error.h"
#include "numeric/format.h"
#include "numeric/integer_groups.h"

namespace assay {

inline constexpr int kTileRows = 16;
inline constexpr int kColumnUnit = 32;

// Where the kept blocks of a sparse int4 matrix lie; empty for a dense one. kernels/sparse_matrix.h has the order.
struct BlockIndex {
  AlignedBuffer tile_starts;   // int32 [n_tiles + 1], in kept blocks
  AlignedBuffer group_starts;  // int32 [n_tiles + 1], in groups of scales
  AlignedBuffer columns;       // int32 [kept blocks]: which 32 inputs the block reads
};

struct PackedMatrix {
  Format format = Format::kF32;
  int64_t n_outputs = 0;
  int64_t n_inputs = 0;
  int64_t padded_inputs = 0;           // multiple of kColumnUnit
  int group = 0;                       // integers only: 16, or a multiple of 32
  Format scale_format = Format::kF32;  // f16 when that loses nothing
  int zero_point = -1;                 // >= 0: minimums are -zero_point * scale and not stored
  AlignedBuffer codes;
  AlignedBuffer scales;
  AlignedBuffer minimums;
  BlockIndex blocks;

  int64_t n_tiles() const { return (n_outputs + kTileRows - 1) / kTileRows; }
  // Groups stored per output, those of padding included.
  int64_t groups_per_row() const { return group == 0 ? 0 : (padded_inputs + group - 1) / group; }
  int64_t tile_bytes() const { return padded_inputs * kTileRows * bits(format) / 8; }
  bool is_sparse() const { return !blocks.tile_starts.empty(); }
  uint64_t bytes() const {
    return codes.size() + scales.size() + minimums.size() + blocks.tile_starts.size() +
           blocks.group_starts.size() + blocks.columns.size();
  }
};

// values: f32 [n_outputs, n_inputs]; converted to `format` (a float format), round to nearest even, fp8
// saturating. kInvalidArgument when the size does not match the shape, the format does not fit or a code is
// out of range; kResourceExhausted when the memory cannot be had.
Result<PackedMatrix> pack_floats(std::span<const float> values, int64_t n_outputs, int64_t n_inputs,
                                 Format format);
Result<PackedMatrix> pack_integers(const IntegerGroups& groups);
// One output row back to f32, exactly as the f32-activation kernels see it. dst: [n_inputs].
// Used for embedding look-up from a matrix that is shared with the output projection.
void unpack_row(const PackedMatrix& matrix, int64_t output, std::span<float> dst);

}  // namespace assay
