// The kernels of one instruction set, as a table of function pointers. Kernels take pointers with shapes,
// allocate nothing, never fail, and run on the calling thread; a backend cuts the work into blocks and
// spreads them.
//
// Fixed order: every output element is accumulated in one order that the table alone decides, never the block
// it was cut into or the number of rows beside it. Two tables agree up to rounding.
//
// Matmul semantics, y[r][o] = sum over k of w[o][k] * x[r][k], accumulated in f32 over ascending k:
//   x f32 or bf16, w any   w is dequantised to f32 (unpack_row's values), products are added one k after the
//   other x int8, w float        the same on the dequantised activations, scale * code x int8, w int8 / int4
//   for each 32 columns (16 when the weights' group is 16), exactly in integers,
//                          d = sum code_w * code_x - zero_point * sum code_x; then y += scale_w * (scale_x *
//                          d) and, with minimums, y += minimum * (scale_x * sum code_x)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hardware/cpu.h"
#include "kernels/backend.h"
#include "numeric/format.h"

namespace assay {

// Activation formats in table order: f32, bf16, int8.
inline constexpr int kActivationFormats = 3;
// -1 for a format that activations cannot have.
constexpr int activation_index(Format format) {
  switch (format) {
    case Format::kF32:
      return 0;
    case Format::kBF16:
      return 1;
    case Format::kInt8:
      return 2;
    case Format::kF16:
    case Format::kFp8E4M3:
    case Format::kFp8E5M2:
    case Format::kInt4:
    case Format::kCount:
      break;
  }
  return -1;
}

// A rectangle of a product: rows of the batch by tiles of 16 outputs.
struct MatmulBlock {
  int64_t first_row = 0;
  int64_t n_rows = 0;
  int64_t first_tile = 0;
  int64_t n_tiles = 0;
};
using MatmulKernel = void (*)(const MatmulTask& task, const MatmulBlock& block);

// Attention of some queries of a task against one KV head (and the query heads that share it). Keys are taken
// in blocks of kKeyBlock positions and splits of kKeySplit positions, both counted from position 0: a query's
// result is the merge, in ascending order, of one online softmax per split, whoever computes it and with
// whichever other queries.
inline constexpr int kKeyBlock = 64;
inline constexpr int kKeySplit = 512;
inline constexpr int kMaxHeadDim = 256;
inline constexpr int kAttentionRowsPerBlock = 96;  // query rows (queries x heads) that share a pass over keys
// One query head's state after one split: the unnormalised output [head_dim], padded to 16, then the largest
// score (times log2 e) and the sum of exponentials, 0 where the row sees nothing; padded to 16.
constexpr int64_t partial_stride(int head_dim) {
  return (head_dim + 15) / 16 * 16 + 16;
}

struct AttentionBlock {
  int kv_head = 0;
  int first_query = 0;
  int n_queries = 0;
};

struct KernelTable {
  Isa isa = Isa::kPortable;

  // [weight format][activation_index]; every entry is set.
  MatmulKernel matmul[kFormatCount][kActivationFormats] = {};
  // [activation_index], for matrices with dropped blocks (sparse_matrix.h has the formula).
  MatmulKernel matmul_sparse[kActivationFormats] = {};
  // bf16 x bf16 by a dot product of pairs: y += w[k] * x[k] + w[k + 1] * x[k + 1], subnormals as zero. Null where
  // there is no such instruction; whether it is faster than matmul[bf16][bf16] depends on the CPU (tuning.h).
  MatmulKernel matmul_bf16_pairs = nullptr;

  // Whole splits, merged and written to the task's output.
  void (*attention)(const AttentionShape& shape, const AttentionTask& task,
                    const AttentionBlock& block) = nullptr;
  // One split of `block` into partials: [n_queries * heads per KV head][partial_stride(head_dim)].
  void (*attention_split)(const AttentionShape& shape, const AttentionTask& task, const AttentionBlock& block,
                          int split, float* partials) = nullptr;
  // Merges n_splits consecutive splits, whose partials lie `split_stride` floats apart, and writes the task's
  // output.
  void (*attention_merge)(const AttentionShape& shape, const AttentionTask& task, const AttentionBlock& block,
                          const float* partials, int64_t split_stride, int n_splits) = nullptr;
  // Keys and values of every head at n_rows positions that lie in one tile of kKvTile. keys, values: [n_rows,
  // n_kv_heads * head_dim], rows `row_stride` apart. Two threads must not write the same tile.
  void (*store_kv)(const KvView& kv, const float* keys, const float* values, int64_t row_stride, int n_rows,
                   int first_position) = nullptr;

  // 1 / sqrt(mean(x^2) + eps). x: [n]
  float (*rms_scale)(const float* x, int64_t n, float eps) = nullptr;
  // y = x * factor * weight. [n]; y may be x
  void (*scale_by)(const float* x, float factor, const float* weight, int64_t n, float* y) = nullptr;
  // y = gate_function(gate) * up. [n]
  void (*gate)(GateFunction function, const float* gate, const float* up, int64_t n, float* y) = nullptr;
  // x += y. [n]
  void (*add)(float* x, const float* y, int64_t n) = nullptr;
  // Rotates the first 2 * n_pairs values of each head. x: [n_heads * head_dim]; cosines, sines: [n_pairs]
  void (*rope)(float* x, int n_heads, int head_dim, int n_pairs, const float* cosines, const float* sines,
               RopeStyle style) = nullptr;
  // In place, exp(x - max) / sum. [n], n > 0. exp is within 2 ulp; results below 2^-126 may be zero.
  void (*softmax)(float* x, int64_t n) = nullptr;
  // Index of the largest value, the first of equals; NaN never wins; 0 when n is 0 or all are NaN.
  int64_t (*argmax)(const float* x, int64_t n) = nullptr;

  // To int8 by groups of kActivationGroup. n is a multiple of the group; sums are of halves of 16.
  // scale = max|x| / 127 with its two lowest bits cleared. A group whose largest magnitude is below 2^-100
  // becomes zero; one with a magnitude of 2^100 or more, infinity or NaN gets scale NaN and codes 0.
  void (*quantise)(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums) = nullptr;
  // To bf16, nearest even, subnormals kept. [n]
  void (*to_bf16)(const float* x, int64_t n, uint16_t* y) = nullptr;
};

// The table for `isa`; null when this build has none or this CPU cannot run it. Lives forever; any thread.
const KernelTable* kernel_table(Isa isa);

}  // namespace assay
