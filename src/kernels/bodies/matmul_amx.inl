// int8 activations x int8 or int4 weights on AMX tile registers, for whole blocks of 16 rows: TDPBSUD
// computes the same exact integers as dot_segment, and the f32 additions that follow are the same in the same
// order, so the result has the same bits as multiply_integer_block. A packed tile of weights is an AMX B tile
// as it lies (packed_matrix.h). Source: Intel SDM volume 1 chapter 18. Tile instructions are written as
// assembly because gcc's intrinsics do not tell the compiler which memory they read.

constexpr int kAmxRows = 16;
constexpr int kAmxTiles = 2;
constexpr int kMostAmxRows = 128;    // rows that share unpacked weights
constexpr int64_t kAmxChunk = 1024;  // columns unpacked at a time
constexpr int64_t kSegmentBytes = 32 * kTileRows;

// tmm0-3: dot products, tmm4-5: activations [16][32], tmm6-7: weights [8][16][4].
void configure_tiles() {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 32, 32, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 8, 8};
  } config;
  static_assert(sizeof(config) == 64);
  asm volatile("ldtilecfg %0" : : "m"(config));
}

template <int kTile>
KERNEL_INLINE void load_tile(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
KERNEL_INLINE void store_tile(void* to) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(int64_t{64}), "i"(kTile) : "memory");
}
// Tile kTo = signed activations (tile kX) x unsigned weights (tile kW).
template <int kTo, int kX, int kW>
KERNEL_INLINE void multiply_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTo));
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kTo), "i"(kX), "i"(kW));
}

// What a block of 16 rows needs of the activations.
struct AmxRows {
  const int8_t* codes;
  const float* scales;
  const int32_t* sums;
  int64_t stride;
};

// kSegments times 32 columns from `column` on: dots[segment][tile][row][16].
template <int kSegments>
KERNEL_INLINE void amx_dots(const AmxRows& x, int64_t column, const uint8_t* const* weights, int32_t* dots) {
  constexpr int kDots = kAmxRows * kTileRows;
  load_tile<4>(x.codes + column, x.stride);
  load_tile<6>(weights[0], 64);
  load_tile<7>(weights[1], 64);
  multiply_tile<0, 4, 6>();
  multiply_tile<1, 4, 7>();
  if constexpr (kSegments == 2) {
    load_tile<5>(x.codes + column + 32, x.stride);
    load_tile<6>(weights[0] + kSegmentBytes, 64);
    load_tile<7>(weights[1] + kSegmentBytes, 64);
    multiply_tile<2, 5, 6>();
    multiply_tile<3, 5, 7>();
  }
  store_tile<0>(dots);
  store_tile<1>(dots + kDots);
  if constexpr (kSegments == 2) {
    store_tile<2>(dots + 2 * kDots);
    store_tile<3>(dots + 3 * kDots);
  }
}

// The sum of the 32 activation codes from `column` on.
KERNEL_INLINE int32_t segment_sum(const int32_t* sums, int64_t column) {
  return sums[column / 16] + sums[column / 16 + 1];
}

// Adds kSegments segments to acc [16][kAmxTiles][16].
template <int kSegments, bool kMinimum>
KERNEL_INLINE void amx_segments(const PackedMatrix& w, const AmxRows& x, const Tile* tiles, int64_t column,
                                const uint8_t* const* weights, float* acc) {
  alignas(64) int32_t dots[kSegments * kAmxTiles * kAmxRows * kTileRows];
  amx_dots<kSegments>(x, column, weights, dots);
  const bool half = w.scale_format == Format::kF16;
  const int32_t zero_point = w.zero_point > 0 ? w.zero_point : 0;
  Lanes scales[kSegments][kAmxTiles], minimums[kSegments][kAmxTiles];
  for (int s = 0; s < kSegments; ++s) {
    const int64_t group = (column + 32 * s) / w.group;
    for (int t = 0; t < kAmxTiles; ++t) {
      scales[s][t] = load_scale(tiles[t].scales, group, half);
      if constexpr (kMinimum) minimums[s][t] = load_scale(tiles[t].minimums, group, half);
    }
  }
  for (int r = 0; r < kAmxRows; ++r) {
    Lanes sum[kAmxTiles];
    for (int t = 0; t < kAmxTiles; ++t) sum[t] = load(acc + (r * kAmxTiles + t) * kTileRows);
    for (int s = 0; s < kSegments; ++s) {
      const int64_t at = column + 32 * s;
      const float x_scale = x.scales[(r * x.stride + at) / kActivationGroup];
      const int32_t codes = segment_sum(x.sums + r * x.stride / 16, at);
      for (int t = 0; t < kAmxTiles; ++t) {
        Ints d = _mm512_load_si512(dots + ((s * kAmxTiles + t) * kAmxRows + r) * kTileRows);
        if constexpr (!kMinimum) d = sub_ints(d, zero_point * codes);
        sum[t] = fma(mul(to_lanes(d), splat(x_scale)), scales[s][t], sum[t]);
        if constexpr (kMinimum)
          sum[t] = fma(minimums[s][t], splat(x_scale * static_cast<float>(codes)), sum[t]);
      }
    }
    for (int t = 0; t < kAmxTiles; ++t) store(acc + (r * kAmxTiles + t) * kTileRows, sum[t]);
  }
}

// The weights of n columns as B tiles: where they lie (int8), or unpacked into `space` (int4).
template <Format kFormat>
KERNEL_INLINE const uint8_t* amx_weights(const Tile& tile, int64_t column, int64_t n, uint8_t* space) {
  const auto* codes = reinterpret_cast<const uint8_t*>(tile.codes);
  if constexpr (kFormat == Format::kInt8) return codes + column * kTileRows;
  for (int64_t k = 0; k < n; k += 8) {
    WeightBytes low, high;
    load_code_halves(codes + (column + k) / 8 * 64, low, high);
    _mm512_store_si512(space + k * kTileRows, low);
    _mm512_store_si512(space + k * kTileRows + 64, high);
  }
  return space;
}

// n_rows (a multiple of 16, at most kMostAmxRows) by two tiles.
template <Format kFormat, bool kMinimum>
void multiply_amx(const MatmulTask& task, int64_t row, int64_t n_rows, int64_t tile) {
  const PackedMatrix& w = *task.weights;
  const ActivationView& x = task.input;
  alignas(64) uint8_t space[kAmxTiles][kAmxChunk * kTileRows];
  alignas(64) float acc[kMostAmxRows * kAmxTiles * kTileRows];
  std::memset(acc, 0, static_cast<size_t>(n_rows) * kAmxTiles * kTileRows * sizeof(float));
  const Tile tiles[kAmxTiles] = {tile_of(w, tile), tile_of(w, tile + 1)};
  for (int64_t first = 0; first < w.padded_inputs; first += kAmxChunk) {
    const int64_t n = w.padded_inputs - first < kAmxChunk ? w.padded_inputs - first : kAmxChunk;
    const uint8_t* weights[kAmxTiles];
    for (int t = 0; t < kAmxTiles; ++t) weights[t] = amx_weights<kFormat>(tiles[t], first, n, space[t]);
    for (int64_t r = 0; r < n_rows; r += kAmxRows) {
      const int64_t at = (row + r) * x.stride;
      const AmxRows rows{static_cast<const int8_t*>(x.values) + at, x.scales + at / kActivationGroup,
                         x.sums + at / 16, x.stride};
      float* row_acc = acc + r * kAmxTiles * kTileRows;
      int64_t k = 0;
      for (; k + 64 <= n; k += 64) {
        const uint8_t* here[kAmxTiles] = {weights[0] + k * kTileRows, weights[1] + k * kTileRows};
        amx_segments<2, kMinimum>(w, rows, tiles, first + k, here, row_acc);
      }
      if (k < n) {
        const uint8_t* here[kAmxTiles] = {weights[0] + k * kTileRows, weights[1] + k * kTileRows};
        amx_segments<1, kMinimum>(w, rows, tiles, first + k, here, row_acc);
      }
    }
  }
  for (int64_t r = 0; r < n_rows; ++r) {
    for (int t = 0; t < kAmxTiles; ++t) {
      finish_tile(task, row + r, tile + t, load(acc + (r * kAmxTiles + t) * kTileRows));
    }
  }
}

// Blocks of 16 rows and pairs of tiles on AMX where the process may use it, what is left by dot products.
template <Format kFormat>
void matmul_integer_amx(const MatmulTask& task, const MatmulBlock& b) {
  if (b.n_rows < kAmxRows || b.n_tiles < kAmxTiles || task.weights->group == 16 || !enable_amx()) {
    matmul_integer<kFormat>(task, b);
    return;
  }
  const int64_t amx_rows = b.n_rows / kAmxRows * kAmxRows, amx_tiles = b.n_tiles / kAmxTiles * kAmxTiles;
  const bool minimum = task.weights->zero_point < 0;
  configure_tiles();
  for (int64_t t = b.first_tile; t < b.first_tile + amx_tiles; t += kAmxTiles) {
    for (int64_t r = 0; r < amx_rows; r += kMostAmxRows) {
      const int64_t n = amx_rows - r < kMostAmxRows ? amx_rows - r : kMostAmxRows;
      if (minimum) {
        multiply_amx<kFormat, true>(task, b.first_row + r, n, t);
      } else {
        multiply_amx<kFormat, false>(task, b.first_row + r, n, t);
      }
    }
  }
  asm volatile("tilerelease");  // so that the system need not save the tiles
  if (amx_rows < b.n_rows) {
    matmul_integer<kFormat>(task, {b.first_row + amx_rows, b.n_rows - amx_rows, b.first_tile, amx_tiles});
  }
  if (amx_tiles < b.n_tiles) {
    matmul_integer<kFormat>(task, {b.first_row, b.n_rows, b.first_tile + amx_tiles, b.n_tiles - amx_tiles});
  }
}
