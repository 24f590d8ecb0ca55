// Scores of a tile of query rows against one key block, in units of log2(e): queries come scaled.
//
// Every row's score of a key is one sum over ascending dimensions, in f32, or exactly in integers: for int8 and
// int4 keys a query is quantised to 14 bits, 128 * high + low with both in -64..64, by one scale a row. Half a
// step is max|q| / 16382, a fraction of what the keys' own codes leave open.

// Integer queries of a tile of rows.
struct IntegerQueries {
  float scales[kAttentionRows];
  int32_t sums[kAttentionRows][kMaxHeadDim / kKvGroup];  // of codes, by groups of dimensions
};

// The prepared queries of one tile.
struct QueryTile {
  int n_rows = 0;
  float* floats = nullptr;    // [padded_dim][n_rows]
  int8_t* quads = nullptr;    // [padded_dim / 4][n_rows][high 4, low 4]
  IntegerQueries* integers = nullptr;
};

// Where a key block's tiles lie, 16 positions each.
struct BlockTiles {
  const std::byte* keys[kKeyBlock / 16];
  const std::byte* values[kKeyBlock / 16];
};

constexpr float kQuerySteps = 8191;

// One row of queries, scaled by `scale`; x: [head_dim], zeros up to padded_dim.
KERNEL_INLINE void quantise_query(const float* x, float scale, int padded_dim, int row, const QueryTile& tile) {
  uint32_t magnitude = 0;
  for (int d = 0; d < padded_dim; d += 16) magnitude = largest_magnitude_bits(load(x + d), magnitude);
  IntegerQueries& out = *tile.integers;
  const float largest = std::bit_cast<float>(magnitude);
  const bool finite = magnitude < 0x7f800000, tiny = largest < 0x1p-100F;
  const float inverse = finite && !tiny ? kQuerySteps / largest : 0;
  out.scales[row] = !finite ? std::numeric_limits<float>::quiet_NaN() : tiny ? 0 : largest / kQuerySteps * scale;
  for (int32_t& sum : out.sums[row]) sum = 0;
  for (int d = 0; d < padded_dim; d += 16) {
    alignas(16) int8_t high[16], low[16];
    const Lanes codes = inverse == 0 ? splat(0) : round_even(mul(load(x + d), splat(inverse)));
    const Lanes upper = round_even(mul(codes, splat(1.0F / 128)));
    const int32_t upper_sum = store_signed_bytes(high, upper);
    const int32_t lower_sum = store_signed_bytes(low, sub(codes, mul(upper, splat(128))));
    out.sums[row][d / kKvGroup] += 128 * upper_sum + lower_sum;
    for (int j = 0; j < 4; ++j) {
      int8_t* quad = tile.quads + ((d / 4 + j) * tile.n_rows + row) * 8;
      std::memcpy(quad, high + 4 * j, 4);
      std::memcpy(quad + 4, low + 4 * j, 4);
    }
  }
}

// scores[r][16 v + lane] for kVectors tiles of keys in a float format.
template <Format kFormat, int kRows, int kVectors>
KERNEL_INLINE void score_floats(const float* queries, int padded_dim, const std::byte* const* keys,
                                float* scores) {
  constexpr int kUnit = kv_unit(kFormat);
  Lanes acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) acc[r][v] = splat(0);
  }
  const std::byte* tiles[kVectors];
  for (int v = 0; v < kVectors; ++v) tiles[v] = keys[v];
  const int64_t n_bytes = int64_t{padded_dim} / kUnit * 64;
  for (int64_t at = 0; at < n_bytes; at += 64, queries += kUnit * kRows) {
    Lanes key[kVectors][kUnit];
    for (int v = 0; v < kVectors; ++v) decode_cells<kFormat>(tiles[v] + at, key[v]);
    for (int u = 0; u < kUnit; ++u) {
      for (int r = 0; r < kRows; ++r) {
        const Lanes q = splat(queries[u * kRows + r]);
        for (int v = 0; v < kVectors; ++v) acc[r][v] = fma(q, key[v][u], acc[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) store(scores + r * kKeyBlock + 16 * v, acc[r][v]);
  }
}

// Integer accumulators are twice as many, high and low: a tile's rows are taken in parts.
template <int kRows>
constexpr int integer_rows() {
  return kRows % 3 == 0 ? 3 : kRows < kCodeRows ? kRows : kCodeRows;
}

// Exact sums of query codes times key codes over `n_cells` rows of cells, with the keys' offset; kRows of the
// kOf rows of a tile.
template <Format kFormat, int kRows, int kOf, int kVectors>
KERNEL_INLINE void score_codes(const int8_t* quads, int n_cells, const std::byte* const* keys, int64_t at,
                               Ints (*dots)[kVectors]) {
  Ints high[kRows][kVectors], low[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) high[r][v] = low[r][v] = zero_ints();
  }
  const std::byte* tiles[kVectors];
  for (int v = 0; v < kVectors; ++v) tiles[v] = keys[v] + at;
  constexpr int kQuads = kFormat == Format::kInt4 ? 2 : 1;
  for (int64_t i = 0; i < int64_t{n_cells} * 64; i += 64) {
    Cells cells[kVectors][kQuads];
    for (int v = 0; v < kVectors; ++v) {
      cells[v][0] = load_cells(tiles[v] + i);
      if constexpr (kQuads == 2) split_nibbles(cells[v][0], cells[v][0], cells[v][1]);
    }
    for (int q = 0; q < kQuads; ++q, quads += kOf * 8) {
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          high[r][v] = dot_unsigned(high[r][v], cells[v][q], quads + r * 8);
          low[r][v] = dot_unsigned(low[r][v], cells[v][q], quads + r * 8 + 4);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) dots[r][v] = high_and_low(high[r][v], low[r][v]);
  }
}

template <int kRows, int kOf, int kVectors>
KERNEL_INLINE void score_int8(const QueryTile& queries, int first_row, int padded_dim,
                              const std::byte* const* tiles, float* scores) {
  Ints dots[kRows][kVectors];
  score_codes<Format::kInt8, kRows, kOf, kVectors>(queries.quads + first_row * 8, padded_dim / 4, tiles, 0,
                                                   dots);
  for (int r = 0; r < kRows; ++r) {
    int32_t sum = 0;
    for (int g = 0; g * kKvGroup < padded_dim; ++g) sum += queries.integers->sums[first_row + r][g];
    const Lanes scale = splat(queries.integers->scales[first_row + r]);
    for (int v = 0; v < kVectors; ++v) {
      const Lanes key_scales = load(reinterpret_cast<const float*>(tiles[v] + int64_t{padded_dim} * 16));
      const Lanes dot = to_lanes(sub_ints(dots[r][v], 128 * sum));
      store(scores + (first_row + r) * kKeyBlock + 16 * v, mul(mul(dot, key_scales), scale));
    }
  }
}

template <int kRows, int kOf, int kVectors>
KERNEL_INLINE void score_int4(const QueryTile& queries, int first_row, int padded_dim,
                              const std::byte* const* tiles, float* scores) {
  const int n_groups = kv_groups(padded_dim);
  for (int g = 0; g < n_groups; ++g) {
    Ints dots[kRows][kVectors];
    const int first = g * kKvGroup;
    const int n = padded_dim - first < kKvGroup ? padded_dim - first : kKvGroup;
    score_codes<Format::kInt4, kRows, kOf, kVectors>(queries.quads + (first / 4 * kOf + first_row) * 8, n / 8,
                                                     tiles, int64_t{first} * 8, dots);
    for (int v = 0; v < kVectors; ++v) {
      const auto* scales =
          reinterpret_cast<const uint16_t*>(tiles[v] + int64_t{padded_dim} * 8 + int64_t{g} * 64);
      const Lanes key_scales = load_f16(scales), minimums = load_f16(scales + 16);
      for (int r = 0; r < kRows; ++r) {
        const int row = first_row + r;
        float* out = scores + row * kKeyBlock + 16 * v;
        Lanes s = mul(to_lanes(dots[r][v]), key_scales);
        s = fma(splat(static_cast<float>(queries.integers->sums[row][g])), minimums, s);
        if (g > 0) s = add(load(out), s);
        if (g == n_groups - 1) s = mul(s, splat(queries.integers->scales[row]));
        store(out, s);
      }
    }
  }
}

template <Format kFormat, int kRows, int kVectors>
KERNEL_INLINE void score_vectors(const QueryTile& queries, int padded_dim, const std::byte* const* keys,
                                 float* scores) {
  if constexpr (!is_integer(kFormat)) {
    score_floats<kFormat, kRows, kVectors>(queries.floats, padded_dim, keys, scores);
  } else {
    constexpr int kPart = integer_rows<kRows>();
    for (int r = 0; r < kRows; r += kPart) {
      if constexpr (kFormat == Format::kInt8) {
        score_int8<kPart, kRows, kVectors>(queries, r, padded_dim, keys, scores);
      } else {
        score_int4<kPart, kRows, kVectors>(queries, r, padded_dim, keys, scores);
      }
    }
  }
}

// How many vectors of cells stay in registers beside the sums of kRows rows.
template <Format kFormat, int kRows>
constexpr int vectors_beside() {
  if (is_integer(kFormat)) return kCodeVectors;
  for (int n = 4; n > 1; n /= 2) {
    if (n * (kRows + kv_unit(kFormat)) + 1 < kLaneRegisters) return n;
  }
  return 1;
}

// scores: [kRows][kKeyBlock]; tiles [first, end) of the block, -infinity in the others.
template <Format kFormat, int kRows>
void score_tile(const QueryTile& queries, int padded_dim, const BlockTiles& block, int first, int end,
                float* scores) {
  constexpr int kBeside = vectors_beside<kFormat, kRows>();
  int v = first;
  for (; v + kBeside <= end; v += kBeside) {
    score_vectors<kFormat, kRows, kBeside>(queries, padded_dim, block.keys + v, scores + 16 * v);
  }
  for (; v < end; ++v) score_vectors<kFormat, kRows, 1>(queries, padded_dim, block.keys + v, scores + 16 * v);
  for (v = 0; v < kKeyBlock / 16; ++v) {
    if (v >= first && v < end) continue;
    for (int r = 0; r < kRows; ++r) store(scores + r * kKeyBlock + 16 * v, splat(kMinusInfinity));
  }
}
