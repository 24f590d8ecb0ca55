// The weighted sum of values of a tile of query rows over one key block.
//
// In f32 a row adds weight * value over ascending visible keys, one after the other. For int8 and int4 values a
// row's weights, times the scales of the values, are quantised to 14 bits, 128 * high + low with both in
// 0..127, by one scale for each block (and group of dimensions); the block's sum is then exact. Half a step is
// the block's largest weight / 32766, a fraction of what the values' own codes leave open.

struct Visible {
  int first = 0, end = 0;  // keys of the block, [first, end)
};

// Rows of a tile while they take a block: weights[r][key] are zero for keys that are not visible.
struct ValueTile {
  const Visible* seen = nullptr;
  const float* weights = nullptr;      // [rows][kKeyBlock]
  const float* corrections = nullptr;  // [rows]: what the sums so far are multiplied by
  float* partials = nullptr;
  int64_t stride = 0;
};

// Adds whole cells: keys [first, end), multiples of the unit, for kVectors x 16 dimensions from d on.
// partials[r][d ..] = correction * partials[r][d ..] + sum of weight * value.
template <Format kFormat, int kRows, int kVectors>
KERNEL_INLINE void add_cells(const ValueTile& rows, int first, int end, const BlockTiles& block, int padded_dim,
                             int d, const float* corrections) {
  constexpr int kUnit = kv_unit(kFormat);
  Lanes acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = mul(load(rows.partials + r * rows.stride + d + 16 * v), splat(corrections[r]));
    }
  }
  const int64_t cell_stride = int64_t{padded_dim} * 4;
  for (int key = first; key < end;) {
    const std::byte* cells = block.values[key / 16] + key % 16 / kUnit * cell_stride + int64_t{d} * 4;
    const float* weights = rows.weights + key;
    const int stop = key / 16 * 16 + 16 < end ? key / 16 * 16 + 16 : end;
    for (; key < stop; key += kUnit, cells += cell_stride, weights += kUnit) {
      Lanes value[kVectors][kUnit];
      for (int v = 0; v < kVectors; ++v) decode_cells<kFormat>(cells + 64 * v, value[v]);
      for (int u = 0; u < kUnit; ++u) {
        for (int r = 0; r < kRows; ++r) {
          const Lanes w = splat(weights[r * kKeyBlock + u]);
          for (int v = 0; v < kVectors; ++v) acc[r][v] = fma(w, value[v][u], acc[r][v]);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) store(rows.partials + r * rows.stride + d + 16 * v, acc[r][v]);
  }
}

// Adds keys [first, end), all of one cell.
template <Format kFormat, int kRows>
void add_part_of_cell(const ValueTile& rows, int first, int end, const BlockTiles& block, int padded_dim,
                      const float* corrections) {
  constexpr int kUnit = kv_unit(kFormat);
  const int cell = first / kUnit * kUnit;
  for (int d = 0; d < padded_dim; d += 16) {
    Lanes value[kUnit];
    decode_cells<kFormat>(
        block.values[cell / 16] + cell % 16 / kUnit * int64_t{padded_dim} * 4 + int64_t{d} * 4, value);
    for (int r = 0; r < kRows; ++r) {
      float* out = rows.partials + r * rows.stride + d;
      Lanes sum = mul(load(out), splat(corrections[r]));
      for (int u = 0; u < kUnit; ++u) {
        if (cell + u < first || cell + u >= end) continue;
        sum = fma(splat(rows.weights[r * kKeyBlock + cell + u]), value[u], sum);
      }
      store(out, sum);
    }
  }
}

// Keys of `seen`, which all rows see.
template <Format kFormat, int kRows>
KERNEL_INLINE void add_value_range(const ValueTile& rows, const Visible& seen, const BlockTiles& block,
                                   int padded_dim, const float* corrections) {
  constexpr int kUnit = kv_unit(kFormat), kBeside = vectors_beside<kFormat, kRows>();
  float ones[kRows];
  for (float& one : ones) one = 1;
  int first = seen.first;
  if (first % kUnit != 0) {
    const int next = first / kUnit * kUnit + kUnit < seen.end ? first / kUnit * kUnit + kUnit : seen.end;
    add_part_of_cell<kFormat, kRows>(rows, first, next, block, padded_dim, corrections);
    first = next;
    corrections = ones;
  }
  const int end = seen.end > first ? first + (seen.end - first) / kUnit * kUnit : first;
  int d = 0;
  for (; d + 16 * kBeside <= padded_dim; d += 16 * kBeside)
    add_cells<kFormat, kRows, kBeside>(rows, first, end, block, padded_dim, d, corrections);
  for (; d < padded_dim; d += 16)
    add_cells<kFormat, kRows, 1>(rows, first, end, block, padded_dim, d, corrections);
  if (end < seen.end) add_part_of_cell<kFormat, kRows>(rows, end, seen.end, block, padded_dim, ones);
}

// One row by itself, where rows of a tile differ in what they see.
template <Format kFormat>
void add_value_row(const ValueTile& rows, int r, const Visible& seen, const BlockTiles& block, int padded_dim,
                   float correction) {
  if (seen.end <= seen.first && correction == 1) return;
  ValueTile row = rows;
  row.weights += r * kKeyBlock;
  row.partials += r * rows.stride;
  add_value_range<kFormat, 1>(row, seen, block, padded_dim, &correction);
}

// Keys that all rows see are taken together; those before and behind them row by row, still ascending.
template <Format kFormat, int kRows>
void add_float_values(const ValueTile& rows, const BlockTiles& block, int padded_dim) {
  Visible common = rows.seen[0];
  bool equal = true;
  for (int r = 1; r < kRows; ++r) {
    equal = equal && rows.seen[r].first == rows.seen[0].first && rows.seen[r].end == rows.seen[0].end;
    common.first = rows.seen[r].first > common.first ? rows.seen[r].first : common.first;
    common.end = rows.seen[r].end < common.end ? rows.seen[r].end : common.end;
  }
  if (equal) return add_value_range<kFormat, kRows>(rows, common, block, padded_dim, rows.corrections);
  if (common.end <= common.first) {
    for (int r = 0; r < kRows; ++r)
      add_value_row<kFormat>(rows, r, rows.seen[r], block, padded_dim, rows.corrections[r]);
    return;
  }
  float ones[kRows];
  for (int r = 0; r < kRows; ++r) {
    ones[r] = 1;
    add_value_row<kFormat>(rows, r, {rows.seen[r].first, common.first}, block, padded_dim,
                           rows.corrections[r]);
  }
  add_value_range<kFormat, kRows>(rows, common, block, padded_dim, ones);
  for (int r = 0; r < kRows; ++r)
    add_value_row<kFormat>(rows, r, {common.end, rows.seen[r].end}, block, padded_dim, 1);
}

// Weights of kRows rows in 14 bits.
template <int kRows>
struct WeightCodes {
  alignas(16) int8_t high[kRows][kKeyBlock];
  alignas(16) int8_t low[kRows][kKeyBlock];
  float steps[kRows];  // value of one code
  float sums[kRows];   // int4: what the minimums add
};

constexpr float kWeightSteps = 16383;

template <Format kFormat>
KERNEL_INLINE const std::byte* value_scales(const std::byte* tile, int padded_dim, int group) {
  return tile + (kFormat == Format::kInt8 ? int64_t{padded_dim} * 16
                                          : int64_t{padded_dim} * 8 + int64_t{group} * 64);
}

// Scales (and minimums) of what a row sees in tiles [0, n_tiles), zero elsewhere.
template <Format kFormat>
KERNEL_INLINE void scale_weights(const float* weights, const Visible& seen, const BlockTiles& block,
                                 int padded_dim, int group, Lanes* scaled, float* sum) {
  Lanes total = splat(0);
  for (int v = 0; v < kKeyBlock / 16; ++v) {
    scaled[v] = splat(0);
    if (16 * v >= seen.end || 16 * v + 16 <= seen.first) continue;
    const std::byte* scales = value_scales<kFormat>(block.values[v], padded_dim, group);
    const Lanes w = load(weights + 16 * v);
    const bool whole = seen.first <= 16 * v && seen.end >= 16 * v + 16;
    if constexpr (kFormat == Format::kInt8) {
      scaled[v] = mul(w, load(reinterpret_cast<const float*>(scales)));
    } else {
      const auto* halves = reinterpret_cast<const uint16_t*>(scales);
      scaled[v] = mul(w, load_f16(halves));
      Lanes part = mul(w, load_f16(halves + 16));
      if (!whole) part = keep_between(part, seen.first - 16 * v, seen.end - 16 * v, 0);
      total = add(total, part);
    }
    // What is not visible may hold anything, NaN too.
    if (!whole) scaled[v] = keep_between(scaled[v], seen.first - 16 * v, seen.end - 16 * v, 0);
  }
  *sum = kFormat == Format::kInt4 ? reduce_add(total) : 0;
}

template <Format kFormat, int kRows>
KERNEL_INLINE void quantise_weights(const ValueTile& rows, const BlockTiles& block, int padded_dim, int group,
                                    WeightCodes<kRows>& out) {
  for (int r = 0; r < kRows; ++r) {
    Lanes scaled[kKeyBlock / 16];
    scale_weights<kFormat>(rows.weights + r * kKeyBlock, rows.seen[r], block, padded_dim, group, scaled,
                           &out.sums[r]);
    const uint32_t magnitude = largest_bits(scaled);
    const float largest = std::bit_cast<float>(magnitude);
    const bool finite = magnitude < 0x7f800000, tiny = largest < 0x1p-100F;
    const Lanes inverse = splat(finite && !tiny ? kWeightSteps / largest : 0);
    out.steps[r] = !finite ? std::numeric_limits<float>::quiet_NaN() : tiny ? 0 : largest / kWeightSteps;
    for (int v = 0; v < kKeyBlock / 16; ++v) {
      const Lanes codes = finite ? round_even(mul(scaled[v], inverse)) : splat(0);
      const Lanes upper = round_even(sub(mul(codes, splat(1.0F / 128)), splat(127.0F / 256)));  // floor
      store_signed_bytes(out.high[r] + 16 * v, upper);
      store_signed_bytes(out.low[r] + 16 * v, sub(codes, mul(upper, splat(128))));
    }
  }
}

// 16 kVectors dimensions of one group from dimension d on; kRows of the kOf rows of a tile.
template <Format kFormat, int kRows, int kOf, int kVectors>
KERNEL_INLINE void add_codes(const ValueTile& rows, int first_row, const WeightCodes<kOf>& codes,
                             const BlockTiles& block, int padded_dim, int d, int first_tile, int end_tile) {
  Ints high[kRows][kVectors], low[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) high[r][v] = low[r][v] = zero_ints();
  }
  constexpr int kQuads = kFormat == Format::kInt4 ? 2 : 1;
  for (int tile = first_tile; tile < end_tile; ++tile) {
    const std::byte* cells_at = block.values[tile] + int64_t{d} * 4;
    const int8_t* highs = codes.high[first_row] + 16 * tile;
    const int8_t* lows = codes.low[first_row] + 16 * tile;
    for (int i = 0; i < 4 / kQuads; ++i, cells_at += int64_t{padded_dim} * 4) {
      Cells cells[kVectors][kQuads];
      for (int v = 0; v < kVectors; ++v) {
        cells[v][0] = load_cells(cells_at + 64 * v);
        if constexpr (kQuads == 2) split_nibbles(cells[v][0], cells[v][0], cells[v][1]);
      }
      for (int q = 0; q < kQuads; ++q, highs += 4, lows += 4) {
        for (int r = 0; r < kRows; ++r) {
          for (int v = 0; v < kVectors; ++v) {
            high[r][v] = dot_signed(high[r][v], cells[v][q], highs + r * kKeyBlock);
            low[r][v] = dot_signed(low[r][v], cells[v][q], lows + r * kKeyBlock);
          }
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const int row = first_row + r;
    if (rows.seen[row].end <= rows.seen[row].first) continue;  // its bits stay as they are
    for (int v = 0; v < kVectors; ++v) {
      float* out = rows.partials + row * rows.stride + d + 16 * v;
      Lanes sum = mul(load(out), splat(rows.corrections[row]));
      sum = fma(to_lanes(high_and_low(high[r][v], low[r][v])), splat(codes.steps[row]), sum);
      if constexpr (kFormat == Format::kInt4) sum = add(sum, splat(codes.sums[row]));
      store(out, sum);
    }
  }
}

template <Format kFormat, int kRows, int kVectors>
KERNEL_INLINE void add_code_rows(const ValueTile& rows, const WeightCodes<kRows>& codes,
                                 const BlockTiles& block, int padded_dim, int d, int first_tile,
                                 int end_tile) {
  constexpr int kPart = integer_rows<kRows>();
  for (int r = 0; r < kRows; r += kPart)
    add_codes<kFormat, kPart, kRows, kVectors>(rows, r, codes, block, padded_dim, d, first_tile, end_tile);
}

template <Format kFormat, int kRows>
void add_integer_values(const ValueTile& rows, const BlockTiles& block, int padded_dim) {
  int first_tile = kKeyBlock / 16, end_tile = 0;
  for (int r = 0; r < kRows; ++r) {
    if (rows.seen[r].end <= rows.seen[r].first) continue;
    first_tile = rows.seen[r].first / 16 < first_tile ? rows.seen[r].first / 16 : first_tile;
    end_tile = (rows.seen[r].end + 15) / 16 > end_tile ? (rows.seen[r].end + 15) / 16 : end_tile;
  }
  WeightCodes<kRows> codes;
  // int8 has one scale a head: one group of all dimensions.
  const int group_dims = kFormat == Format::kInt8 ? padded_dim : kKvGroup;
  for (int d = 0; d < padded_dim;) {
    quantise_weights<kFormat, kRows>(rows, block, padded_dim, d / group_dims, codes);
    const int end = d + group_dims < padded_dim ? d + group_dims : padded_dim;
    for (; d + 16 * kCodeVectors <= end; d += 16 * kCodeVectors) {
      add_code_rows<kFormat, kRows, kCodeVectors>(rows, codes, block, padded_dim, d, first_tile, end_tile);
    }
    for (; d < end; d += 16)
      add_code_rows<kFormat, kRows, 1>(rows, codes, block, padded_dim, d, first_tile, end_tile);
  }
}

template <Format kFormat, int kRows>
void add_value_tile(const ValueTile& rows, const BlockTiles& block, int padded_dim) {
  if constexpr (is_integer(kFormat)) {
    add_integer_values<kFormat, kRows>(rows, block, padded_dim);
  } else {
    add_float_values<kFormat, kRows>(rows, block, padded_dim);
  }
}
