// Products accumulated in f32 over ascending k, one k after the other in each lane. Columns are taken in
// chunks so that activations (converted to f32) and, for many rows, dequantised weights stay in the nearest
// cache; accumulators wait between chunks in memory, unrounded, so the order and the result do not depend on
// any of this.

constexpr int64_t kChunk = 256;  // columns; a multiple of 32 and of every unit
constexpr int kPanelRows = 32;   // rows that share a dequantised chunk
constexpr int kWidestTiles = kFloatVectorTiles > kFloatTiles ? kFloatVectorTiles : kFloatTiles;

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
  if constexpr (kRows > 1) multiply_rows<kFormat, kRows / 2, kTiles>(w, tiles, c, n_rows);
}

// The same on weights dequantised beforehand: kFloatTiles tiles, each a chunk of f32 columns.
template <Format kFormat, int kTiles>
void multiply_panel(const PackedMatrix& w, const Tile* tiles, FloatChunk c, int64_t n_rows) {
  alignas(64) float values[kTiles][kChunk * kTileRows];
  constexpr int kStep = kUnit<kFormat>;
  Tile plain[kTiles];
  for (int t = 0; t < kTiles; ++t) {
    plain[t] = {reinterpret_cast<const std::byte*>(values[t]), nullptr, nullptr};
    Dequantiser q{};
    for (int64_t k = 0; k < c.n_columns; k += kStep) {
      if constexpr (is_integer(kFormat)) {
        if (k % 16 == 0) q = dequantiser_of(w, tiles[t], c.first_column + k);
      }
      Lanes out[kStep];
      load_weights<kFormat>(tiles[t], c.first_column + k, q, out);
      for (int u = 0; u < kStep; ++u) store(values[t] + (k + u) * kTileRows, out[u]);
    }
  }
  c.first_column = 0;
  multiply_rows<Format::kF32, kFloatRows, kTiles>(w, plain, c, n_rows);
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

// Rows [row, row + n_rows), n_rows <= kPanelRows, by kTiles tiles.
template <Format kFormat, int kTiles>
void multiply_tiles(const MatmulTask& task, int64_t row, int64_t n_rows, int64_t tile) {
  const PackedMatrix& w = *task.weights;
  alignas(64) float decoded[kPanelRows * kChunk];
  alignas(64) float acc[kPanelRows * kAccStride];
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
    if constexpr (kTiles > kFloatTiles) {
      multiply_rows<kFormat, 1, kTiles>(w, tiles, c, n_rows);
    } else if (kFormat != Format::kF32 && n_rows > kFloatRows) {
      multiply_panel<kFormat, kTiles>(w, tiles, c, n_rows);
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

template <Format kFormat, int kTiles>
KERNEL_INLINE void multiply_tile_group(const MatmulTask& task, const MatmulBlock& b, int64_t tile) {
  for (int64_t r = 0; r < b.n_rows; r += kPanelRows) {
    const int64_t n = b.n_rows - r < kPanelRows ? b.n_rows - r : kPanelRows;
    multiply_tiles<kFormat, kTiles>(task, b.first_row + r, n, tile);
  }
}

template <Format kFormat>
void matmul_float(const MatmulTask& task, const MatmulBlock& b) {
  int64_t tile = b.first_tile;
  const int64_t end = b.first_tile + b.n_tiles;
  if constexpr (kFloatVectorTiles > kFloatTiles) {
    for (; b.n_rows == 1 && tile + kFloatVectorTiles <= end; tile += kFloatVectorTiles) {
      multiply_tile_group<kFormat, kFloatVectorTiles>(task, b, tile);
    }
  }
  for (; tile + kFloatTiles <= end; tile += kFloatTiles)
    multiply_tile_group<kFormat, kFloatTiles>(task, b, tile);
  if constexpr (kFloatTiles > 1) {
    for (; tile < end; ++tile) multiply_tile_group<kFormat, 1>(task, b, tile);
  }
}
