// Products with int4 matrices of which blocks of 16 outputs x 32 inputs are dropped; kernels/sparse_matrix.h has
// layout and formula. A tile reads inputs of its own, so rows of the batch take the place of tiles in the
// register block: one tile's codes are unpacked once for kSparseRows rows.

constexpr int kSparseRows = kIsa == Isa::kAvx512 ? 8 : 2;  // three accumulators a row stay in registers
constexpr int64_t kSparseBlock = 32;        // columns
constexpr int64_t kSparseBlockBytes = 256;  // 16 lanes x 32 nibbles
constexpr int64_t kMostSparseBlocks = 512;  // of a row, whose sums are prepared at once

// One tile: its kept blocks and where their scales lie.
struct SparseTile {
  const uint8_t* codes;
  const int32_t* columns;
  int64_t n_blocks;
  const std::byte* scales;
  const std::byte* minimums;
};

KERNEL_INLINE SparseTile sparse_tile_of(const PackedMatrix& w, int64_t tile) {
  const int32_t* starts = w.blocks.tile_starts.as<int32_t>();
  const int64_t part_bytes = w.scale_format == Format::kF16 ? 2 : 4;
  const int64_t parts = w.blocks.group_starts.as<int32_t>()[tile] * kTileRows * part_bytes;
  return {w.codes.as<uint8_t>() + starts[tile] * kSparseBlockBytes,
          w.blocks.columns.as<int32_t>() + starts[tile], starts[tile + 1] - starts[tile],
          w.scales.data() + parts, w.minimums.data() + parts};
}

// scale_x * sum of codes, for each block of 32 columns of some rows.
template <int kRows>
struct ScaledSums {
  alignas(64) float of[kRows][kMostSparseBlocks];
};

template <int kRows>
KERNEL_INLINE void find_scaled_sums(const ActivationView& x, int64_t row, int64_t first_block, int64_t n_blocks,
                                    ScaledSums<kRows>& out) {
  for (int r = 0; r < kRows; ++r) {
    const int64_t block = (row + r) * x.stride / kSparseBlock + first_block;
    for (int64_t b = 0; b < n_blocks; ++b) {
      const int32_t sum = x.sums[2 * (block + b)] + x.sums[2 * (block + b) + 1];
      out.of[r][b] = x.scales[block + b] * static_cast<float>(sum);
    }
  }
}

// acc[r] += blocks [first, last) of the tile, whose columns lie in the prepared span from first_block on.
template <int kRows>
KERNEL_INLINE void multiply_sparse_tile(const PackedMatrix& w, const SparseTile& tile, const ActivationView& x,
                                        int64_t row, const ScaledSums<kRows>& sums, int64_t first_block,
                                        int64_t first, int64_t last, Lanes (&acc)[kRows]) {
  const auto* values = static_cast<const int8_t*>(x.values) + row * x.stride;
  const float* x_scales = x.scales + row * x.stride / kSparseBlock;
  const int64_t scale_stride = x.stride / kSparseBlock;
  const int64_t per_group = w.group / kSparseBlock;
  const bool half = w.scale_format == Format::kF16;
  for (int64_t i = first; i < last;) {
    const int64_t group = i / per_group;
    const int64_t end = (group + 1) * per_group < last ? (group + 1) * per_group : last;
    Lanes scaled[kRows];
    float minimum_of[kRows];
    for (int r = 0; r < kRows; ++r) {
      scaled[r] = splat(0);
      minimum_of[r] = 0;
    }
    for (; i < end; ++i) {
      const int64_t block = tile.columns[i];
      const uint8_t* codes = tile.codes + i * kSparseBlockBytes;
      Ints dots[kRows];
      for (int r = 0; r < kRows; ++r) dots[r] = zero_ints();
      for (int64_t k = 0; k < kSparseBlock; k += 8, codes += 64) {
        WeightBytes low, high;
        load_code_halves(codes, low, high);
        const int8_t* at = values + block * kSparseBlock + k;
        for (int r = 0; r < kRows; ++r) {
          add_dots<Codes::kNibbles>(dots[r], low, load_quad(at + r * x.stride));
          add_dots<Codes::kNibbles>(dots[r], high, load_quad(at + r * x.stride + 4));
        }
      }
      for (int r = 0; r < kRows; ++r) {
        scaled[r] = fma(to_lanes(dots[r]), splat(x_scales[r * scale_stride + block]), scaled[r]);
        minimum_of[r] += sums.of[r][block - first_block];
      }
    }
    const Lanes scale = load_scale(tile.scales, group, half);
    const Lanes minimum = load_scale(tile.minimums, group, half);
    for (int r = 0; r < kRows; ++r) {
      acc[r] = fma(scaled[r], scale, acc[r]);
      acc[r] = fma(minimum, splat(minimum_of[r]), acc[r]);
    }
  }
}

template <int kRows>
void multiply_sparse_rows(const MatmulTask& task, int64_t row, int64_t first_tile, int64_t n_tiles) {
  const PackedMatrix& w = *task.weights;
  const int64_t n_blocks = w.padded_inputs / kSparseBlock;
  const bool at_once = n_blocks <= kMostSparseBlocks;
  ScaledSums<kRows> sums;
  if (at_once) find_scaled_sums<kRows>(task.input, row, 0, n_blocks, sums);
  for (int64_t t = first_tile; t < first_tile + n_tiles; ++t) {
    const SparseTile tile = sparse_tile_of(w, t);
    Lanes acc[kRows];
    for (int r = 0; r < kRows; ++r) acc[r] = splat(0);
    int64_t first = 0;
    for (int64_t block = 0; block < n_blocks; block += kMostSparseBlocks) {
      const int64_t end_block = block + kMostSparseBlocks < n_blocks ? block + kMostSparseBlocks : n_blocks;
      if (!at_once) find_scaled_sums<kRows>(task.input, row, block, end_block - block, sums);
      int64_t last = at_once ? tile.n_blocks : first;
      while (last < tile.n_blocks && tile.columns[last] < end_block) ++last;
      multiply_sparse_tile<kRows>(w, tile, task.input, row, sums, block, first, last, acc);
      first = last;
    }
    for (int r = 0; r < kRows; ++r) finish_tile(task, row + r, t, acc[r]);
  }
}

template <int kRows>
void multiply_sparse(const MatmulTask& task, const MatmulBlock& b, int64_t row) {
  const int64_t end = b.first_row + b.n_rows;
  for (; row + kRows <= end; row += kRows) multiply_sparse_rows<kRows>(task, row, b.first_tile, b.n_tiles);
  if constexpr (kRows > 1) multiply_sparse<kRows / 2>(task, b, row);
}

void matmul_sparse_integer(const MatmulTask& task, const MatmulBlock& b) {
  multiply_sparse<kSparseRows>(task, b, b.first_row);
}

// f32 and bf16 activations: weights as unpack_sparse_row() has them, one input after the other.
template <int kRows>
void multiply_sparse_floats(const MatmulTask& task, int64_t row, int64_t t) {
  const PackedMatrix& w = *task.weights;
  const SparseTile tile = sparse_tile_of(w, t);
  const bool half = w.scale_format == Format::kF16;
  alignas(64) float decoded[kRows][kSparseBlock];
  Lanes acc[kRows];
  for (int r = 0; r < kRows; ++r) acc[r] = splat(0);
  for (int64_t i = 0; i < tile.n_blocks; ++i) {
    const int64_t column = tile.columns[i] * kSparseBlock, group = i * kSparseBlock / w.group;
    const Lanes scale = load_scale(tile.scales, group, half);
    const Lanes minimum = load_scale(tile.minimums, group, half);
    for (int r = 0; r < kRows; ++r) {
      if (task.input.format == Format::kF32) {
        const float* x = static_cast<const float*>(task.input.values) + (row + r) * task.input.stride + column;
        std::memcpy(decoded[r], x, sizeof(decoded[r]));
      } else {
        decode_activations(task.input, row + r, column, kSparseBlock, decoded[r]);
      }
    }
    for (int64_t k = 0; k < kSparseBlock; k += 8) {
      Lanes weights[8];
      load_unit<Format::kInt4>(reinterpret_cast<const std::byte*>(tile.codes) + i * kSparseBlockBytes + k * 8,
                               weights);
      for (int u = 0; u < 8; ++u) {
        const Lanes value = add(mul(weights[u], scale), minimum);
        for (int r = 0; r < kRows; ++r) acc[r] = fma(value, splat(decoded[r][k + u]), acc[r]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) finish_tile(task, row + r, t, acc[r]);
}

void matmul_sparse_float(const MatmulTask& task, const MatmulBlock& b) {
  constexpr int kRows = 4;
  for (int64_t tile = b.first_tile; tile < b.first_tile + b.n_tiles; ++tile) {
    int64_t row = b.first_row;
    for (; row + kRows <= b.first_row + b.n_rows; row += kRows) multiply_sparse_floats<kRows>(task, row, tile);
    for (; row < b.first_row + b.n_rows; ++row) multiply_sparse_floats<1>(task, row, tile);
  }
}
