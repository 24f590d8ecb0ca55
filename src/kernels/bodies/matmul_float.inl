// Products accumulated in f32 over ascending k, one k after the other in each lane. Columns are taken in
// chunks so that activations (converted to f32) and, for many rows, dequantised weights stay in the nearest
// caches; accumulators wait between chunks in memory, unrounded, so the order and the result do not depend on
// any of this.

constexpr int64_t kChunk = 256;       // columns, for few rows; a multiple of 32 and of every unit
constexpr int64_t kPanelChunk = 128;  // for many: of kFloatTiles tiles it fits the nearest cache
constexpr int kPanelRows = 132;       // rows and tiles that share dequantised weights and converted activations
constexpr int kPanelTiles = 12;
constexpr int kWidestTiles = kFloatVectorTiles > kFewFloatTiles ? kFloatVectorTiles : kFewFloatTiles;

// One chunk of columns of some rows and tiles.
struct FloatChunk {
  const float* x;  // [rows, x_stride], f32
  int64_t x_stride;
  int64_t first_column, n_columns;
  float* acc;  // [rows][kWidestTiles * 16]
};
constexpr int64_t kAccStride = int64_t{kWidestTiles} * kTileRows;

template <Format kFormat, int kRows, int kTiles>
void multiply_chunk(const PackedMatrix& w, const Tile* tiles, const FloatChunk& c) {
  Lanes acc[kRows][kTiles];
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) acc[r][t] = load(c.acc + r * kAccStride + t * kTileRows);
  }
  constexpr int kStep = kUnit<kFormat>;
  const int64_t segment = !is_integer(kFormat) ? c.n_columns : w.group == 16 ? 16 : 32;
  for (int64_t k0 = 0; k0 < c.n_columns; k0 += segment) {
    Dequantiser q[kTiles];
    if constexpr (is_integer(kFormat)) {
      for (int t = 0; t < kTiles; ++t) q[t] = dequantiser_of(w, tiles[t], c.first_column + k0);
    }
    for (int64_t k = k0; k < k0 + segment; k += kStep) {
      Lanes values[kTiles][kStep];
      for (int t = 0; t < kTiles; ++t) load_weights<kFormat>(tiles[t], c.first_column + k, q[t], values[t]);
      for (int u = 0; u < kStep; ++u) {
        for (int r = 0; r < kRows; ++r) {
          const Lanes x = splat(c.x[r * c.x_stride + k + u]);
          for (int t = 0; t < kTiles; ++t) acc[r][t] = fma(values[t][u], x, acc[r][t]);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) store(c.acc + r * kAccStride + t * kTileRows, acc[r][t]);
  }
}

// n_rows rows in register blocks of kRows, then of half that, down to one.
template <Format kFormat, int kRows, int kTiles>
void multiply_rows(const PackedMatrix& w, const Tile* tiles, FloatChunk c, int64_t n_rows) {
  for (; n_rows >= kRows; n_rows -= kRows) {
    multiply_chunk<kFormat, kRows, kTiles>(w, tiles, c);
    c.x += kRows * c.x_stride;
    c.acc += kRows * kAccStride;
  }
  if constexpr (kRows > 1) multiply_rows<kFormat, kRows == 6 ? 4 : kRows / 2, kTiles>(w, tiles, c, n_rows);
}

// Columns [first, first + n) of one row as f32.
KERNEL_INLINE void decode_activations(const ActivationView& x, int64_t row, int64_t first, int64_t n,
                                      float* out) {
  const int64_t at = row * x.stride + first;
  for (int64_t i = 0; i < n; i += 16) {
    if (x.format == Format::kBF16) {
      store(out + i, load_bf16(static_cast<const uint16_t*>(x.values) + at + i));
    } else {
      const Lanes scale = splat(x.scales[(at + i) / kActivationGroup]);
      store(out + i, mul(load_signed_bytes(static_cast<const int8_t*>(x.values) + at + i), scale));
    }
  }
}

// Rows [row, row + n_rows), n_rows <= kFloatRows, by kTiles tiles, straight from the packed weights.
template <Format kFormat, int kTiles>
void multiply_tiles(const MatmulTask& task, int64_t row, int64_t n_rows, int64_t tile) {
  const PackedMatrix& w = *task.weights;
  alignas(64) float decoded[kFloatRows * kChunk];
  alignas(64) float acc[kFloatRows * kAccStride];
  Tile tiles[kTiles];
  for (int t = 0; t < kTiles; ++t) tiles[t] = tile_of(w, tile + t);
  std::memset(acc, 0, sizeof(float) * static_cast<size_t>(n_rows * kAccStride));
  for (int64_t k = 0; k < w.padded_inputs; k += kChunk) {
    const int64_t n = w.padded_inputs - k < kChunk ? w.padded_inputs - k : kChunk;
    FloatChunk c{decoded, kChunk, k, n, acc};
    if (task.input.format == Format::kF32) {
      c.x = static_cast<const float*>(task.input.values) + row * task.input.stride + k;
      c.x_stride = task.input.stride;
    } else {
      for (int64_t r = 0; r < n_rows; ++r)
        decode_activations(task.input, row + r, k, n, decoded + r * kChunk);
    }
    if constexpr (kTiles > kFewFloatTiles) {
      multiply_rows<kFormat, 1, kTiles>(w, tiles, c, n_rows);
    } else {
      multiply_rows<kFormat, kFloatRows, kTiles>(w, tiles, c, n_rows);
    }
  }
  for (int64_t r = 0; r < n_rows; ++r) {
    for (int t = 0; t < kTiles; ++t) {
      finish_tile(task, row + r, tile + t, load(acc + r * kAccStride + t * kTileRows));
    }
  }
}

// How a register block takes in one line of weights and one splatted word of activations.
struct AddProduct {
  static KERNEL_INLINE void to(Lanes& acc, const Lanes& w, const Lanes& x) { add_product(acc, w, x); }
};

// One chunk of columns of some rows and tiles. In f32; for AddPairs (matmul_bf16_pairs.inl) every word holds two
// columns.
struct FloatPanel {
  const float* x;  // [rows, x_stride]
  int64_t x_stride;
  const float* weights;  // [tiles][n_columns][16], tiles `tile_stride` apart
  int64_t tile_stride;
  int64_t n_columns;
  float* acc;  // [rows][kPanelTiles * 16]
};
constexpr int64_t kPanelStride = int64_t{kPanelTiles} * kTileRows;

template <class Add, int kRows, int kTiles>
void multiply_panel_block(const FloatPanel& p) {
  Lanes acc[kRows][kTiles];
  KERNEL_UNROLL
  for (int r = 0; r < kRows; ++r) {
    KERNEL_UNROLL
    for (int t = 0; t < kTiles; ++t) acc[r][t] = load(p.acc + r * kPanelStride + t * kTileRows);
  }
  // Four rows to a base, so that their addresses need few registers.
  const float* bases[(kRows + 3) / 4];
  KERNEL_UNROLL
  for (int i = 0; i < (kRows + 3) / 4; ++i) bases[i] = p.x + 4 * i * p.x_stride;
  const int64_t offsets[4] = {0, p.x_stride, 2 * p.x_stride, opaque(3 * p.x_stride)};
  const float* weights = p.weights;
  for (int64_t k = 0; k < p.n_columns; ++k, weights += kTileRows) {
    Lanes w[kTiles];
    KERNEL_UNROLL
    for (int t = 0; t < kTiles; ++t) w[t] = load(weights + t * p.tile_stride);
    KERNEL_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Lanes x = splat(bases[r / 4][offsets[r % 4] + k]);
      KERNEL_UNROLL
      for (int t = 0; t < kTiles; ++t) Add::to(acc[r][t], w[t], x);
    }
  }
  KERNEL_UNROLL
  for (int r = 0; r < kRows; ++r) {
    KERNEL_UNROLL
    for (int t = 0; t < kTiles; ++t) store(p.acc + r * kPanelStride + t * kTileRows, acc[r][t]);
  }
}

template <class Add, int kRows, int kTiles>
void multiply_panel_rows(FloatPanel p, int n_rows) {
  for (; n_rows >= kRows; n_rows -= kRows) {
    multiply_panel_block<Add, kRows, kTiles>(p);
    p.x += kRows * p.x_stride;
    p.acc += kRows * kPanelStride;
  }
  if constexpr (kRows > 1) multiply_panel_rows<Add, kRows == 6 ? 4 : kRows / 2, kTiles>(p, n_rows);
}

template <class Add, int kTiles>
void multiply_panel_tiles(FloatPanel p, int n_rows, int n_tiles) {
  for (; n_tiles >= kTiles; n_tiles -= kTiles) {
    multiply_panel_rows<Add, kFloatRows, kTiles>(p, n_rows);
    p.weights += kTiles * p.tile_stride;
    p.acc += kTiles * kTileRows;
  }
  if constexpr (kTiles > 1) multiply_panel_tiles<Add, kTiles - 1>(p, n_rows, n_tiles);
}

// n columns of a tile as f32: [n][16].
template <Format kFormat>
void dequantise_columns(const PackedMatrix& w, const Tile& tile, int64_t first, int64_t n, float* out) {
  constexpr int kStep = kUnit<kFormat>;
  Dequantiser q{};
  for (int64_t k = 0; k < n; k += kStep) {
    if constexpr (is_integer(kFormat)) {
      if (k % 16 == 0) q = dequantiser_of(w, tile, first + k);
    }
    Lanes values[kStep];
    load_weights<kFormat>(tile, first + k, q, values);
    for (int u = 0; u < kStep; ++u) store(out + (k + u) * kTileRows, values[u]);
  }
}

// At most kPanelRows rows by kPanelTiles tiles.
template <Format kFormat>
void multiply_panel(const MatmulTask& task, int64_t row, int n_rows, int64_t tile, int n_tiles) {
  const PackedMatrix& w = *task.weights;
  alignas(64) float decoded[kPanelRows * kPanelChunk];
  alignas(64) float weights[kFormat == Format::kF32 ? 16 : kPanelTiles * kPanelChunk * kTileRows];
  alignas(64) float acc[kPanelRows * kPanelStride];
  std::memset(acc, 0, sizeof(float) * static_cast<size_t>(n_rows * kPanelStride));
  for (int64_t k = 0; k < w.padded_inputs; k += kPanelChunk) {
    const int64_t n = w.padded_inputs - k < kPanelChunk ? w.padded_inputs - k : kPanelChunk;
    FloatPanel p{decoded, kPanelChunk, weights, kPanelChunk * kTileRows, n, acc};
    if (task.input.format == Format::kF32) {
      p.x = static_cast<const float*>(task.input.values) + row * task.input.stride + k;
      p.x_stride = task.input.stride;
    } else {
      for (int r = 0; r < n_rows; ++r)
        decode_activations(task.input, row + r, k, n, decoded + r * kPanelChunk);
    }
    if constexpr (kFormat == Format::kF32) {
      p.weights = reinterpret_cast<const float*>(tile_of(w, tile).codes) + k * kTileRows;
      p.tile_stride = w.padded_inputs * kTileRows;
    } else {
      for (int t = 0; t < n_tiles; ++t)
        dequantise_columns<kFormat>(w, tile_of(w, tile + t), k, n, weights + t * p.tile_stride);
    }
    multiply_panel_tiles<AddProduct, kFloatTiles>(p, n_rows, n_tiles);
  }
  for (int r = 0; r < n_rows; ++r) {
    for (int t = 0; t < n_tiles; ++t)
      finish_tile(task, row + r, tile + t, load(acc + r * kPanelStride + t * kTileRows));
  }
}

template <Format kFormat, int kTiles>
void multiply_tile_groups(const MatmulTask& task, const MatmulBlock& b, int64_t tile) {
  const int64_t end = b.first_tile + b.n_tiles;
  for (; tile + kTiles <= end; tile += kTiles) multiply_tiles<kFormat, kTiles>(task, b.first_row, b.n_rows, tile);
  if constexpr (kTiles > 1) multiply_tile_groups<kFormat, kTiles / 2>(task, b, tile);
}

template <Format kFormat>
void matmul_float(const MatmulTask& task, const MatmulBlock& b) {
  if (b.n_rows == 1) return multiply_tile_groups<kFormat, kFloatVectorTiles>(task, b, b.first_tile);
  if (b.n_rows <= kFloatRows) return multiply_tile_groups<kFormat, kFewFloatTiles>(task, b, b.first_tile);
  const int64_t end = b.first_tile + b.n_tiles;
  for (int64_t t = b.first_tile; t < end; t += kPanelTiles) {
    const auto n_tiles = static_cast<int>(end - t < kPanelTiles ? end - t : kPanelTiles);
    for (int64_t r = 0; r < b.n_rows; r += kPanelRows) {
      const auto n_rows = static_cast<int>(b.n_rows - r < kPanelRows ? b.n_rows - r : kPanelRows);
      multiply_panel<kFormat>(task, b.first_row + r, n_rows, t, n_tiles);
    }
  }
}
