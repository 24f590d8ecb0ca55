// int8 activations x int8 or int4 weights: exact integer dot products over a segment of columns, then one or
// two f32 additions per segment, in ascending order. kernel_table.h has the formula and says what a segment
// is.
//
// What costs beside the dot products is one conversion and two roundings per segment. Where integers can
// start from the bits of 1.5 * 2^23 (kDotBias), the sum read as a float is that number plus the dot product,
// exactly, and conversion and scaling are one fused multiply-add: (bias + d) * scale - bias * scale. Both
// products are exact before the one rounding, because |d| < 2^22 and scales have 22 significant bits
// (rows.inl).

constexpr int64_t kIntegerChunk = 768;  // columns at most: a multiple of every segment
constexpr int kMostSegments = kIntegerChunk / 16;
constexpr int kMostRows = 132;  // rows that share unpacked weights
constexpr int kMostTiles = 12;

// What the activations of some rows and of one chunk of columns contribute beside their codes, by segment.
struct SegmentTerms {
  alignas(64) int32_t start[kMostRows * kMostSegments];     // kDotBias - zero point * sum of codes
  alignas(64) float scale[kMostRows * kMostSegments];       //
  alignas(64) float minus_bias[kMostRows * kMostSegments];  // -kDotBias as a float * scale
  alignas(64) float scaled_sum[kMostRows * kMostSegments];  // scale * sum of codes, for minimums
};

// Columns of a chunk, so that chunks are about equal.
KERNEL_INLINE int64_t chunk_columns(const PackedMatrix& w) {
  const int64_t n = (w.padded_inputs + kIntegerChunk - 1) / kIntegerChunk;
  return n == 0 ? kIntegerChunk : ((w.padded_inputs + n - 1) / n + 127) / 128 * 128;
}

// Columns that are summed in integers: both scales are the same over them.
KERNEL_INLINE int64_t segment_of(const PackedMatrix& w) {
  return w.group == 16 ? 16 : 32;
}

// A chunk of columns of some rows and tiles.
struct IntegerChunk {
  const int8_t* x;  // codes of the first row at the chunk's first column
  int64_t x_stride;
  const uint8_t* codes;  // of the first tile at the chunk's first column
  int64_t tile_stride;   // bytes
  const Tile* tiles;
  int64_t group, segment;
  int64_t first_column, n_columns;
  bool half;
  float* acc;  // [rows][acc_stride]
  int64_t acc_stride;
};

template <int kSegment>
void find_terms(const ActivationView& x, int32_t zero_point, int64_t row, int n_rows, int64_t column,
                int64_t n, SegmentTerms& out) {
  const auto n_segments = static_cast<int>(n / kSegment);
  for (int r = 0; r < n_rows; ++r) {
    const int64_t at = (row + r) * x.stride + column;
    const int32_t* sums = x.sums + at / 16;
    const float* scales = x.scales + at / kActivationGroup;
    for (int s = 0; s < n_segments; ++s) {
      const int32_t sum = kSegment == 16 ? sums[s] : sums[2 * s] + sums[2 * s + 1];
      const float scale = kSegment == 16 ? scales[s / 2] : scales[s];
      out.start[r * kMostSegments + s] = kDotBias - zero_point * sum;
      out.scale[r * kMostSegments + s] = scale;
      out.minus_bias[r * kMostSegments + s] = kMinusDotBias * scale;
      out.scaled_sum[r * kMostSegments + s] = scale * static_cast<float>(sum);
    }
  }
}

// dots[r][t] += one segment. `codes` points at its first column.
template <Codes kCodes, int kRows, int kTiles>
KERNEL_INLINE void dot_segment(const IntegerChunk& c, const int8_t* x, const uint8_t* codes, int64_t n,
                               Ints (&dots)[kRows][kTiles]) {
  // Four rows to a base, so that their addresses need few registers.
  constexpr int kBases = (kRows + 3) / 4;
  const int8_t* bases[kBases];
  for (int i = 0; i < kBases; ++i) bases[i] = x + 4 * i * c.x_stride;
  const int64_t offsets[4] = {0, c.x_stride, 2 * c.x_stride, opaque(3 * c.x_stride)};
  constexpr int kStep = columns_per_line(kCodes);
  for (int64_t k = 0; k < n; k += kStep, codes += 64) {
    if constexpr (kCodes == Codes::kPackedNibbles) {
      WeightBytes low[kTiles], high[kTiles];
      for (int t = 0; t < kTiles; ++t) load_code_halves(codes + t * c.tile_stride, low[t], high[t]);
      for (int r = 0; r < kRows; ++r) {
        const int8_t* at = bases[r / 4] + offsets[r % 4] + k;
        const Quad first = load_quad(at), second = load_quad(at + 4);
        for (int t = 0; t < kTiles; ++t) {
          add_dots<Codes::kNibbles>(dots[r][t], low[t], first);
          add_dots<Codes::kNibbles>(dots[r][t], high[t], second);
        }
      }
    } else {
      WeightBytes w[kTiles];
      for (int t = 0; t < kTiles; ++t) w[t] = load_codes<kCodes>(codes + t * c.tile_stride);
      for (int r = 0; r < kRows; ++r) {
        const Quad quad = load_quad(bases[r / 4] + offsets[r % 4] + k);
        for (int t = 0; t < kTiles; ++t) add_dots<kCodes>(dots[r][t], w[t], quad);
      }
    }
  }
}

// acc += the chunk, segment by segment.
template <Codes kCodes, int kRows, int kTiles>
void multiply_segments(const IntegerChunk& c, const SegmentTerms& terms, int first_row) {
  const int64_t per_group = c.group / c.segment;
  int64_t group = c.first_column / c.group;
  int64_t left = per_group - (c.first_column - group * c.group) / c.segment;
  const uint8_t* codes = c.codes;
  const int64_t segment_bytes = c.segment / columns_per_line(kCodes) * 64;
  Lanes acc[kRows][kTiles];
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) acc[r][t] = load(c.acc + r * c.acc_stride + t * kTileRows);
  }
  int64_t term = int64_t{first_row} * kMostSegments;
  for (int64_t k = 0; k < c.n_columns; k += c.segment, ++term, codes += segment_bytes) {
    Ints dots[kRows][kTiles];
    for (int r = 0; r < kRows; ++r) {
      const Ints start = splat_ints(terms.start[r * kMostSegments + term]);
      for (int t = 0; t < kTiles; ++t) dots[r][t] = start;
    }
    dot_segment<kCodes, kRows, kTiles>(c, c.x + k, codes, c.segment, dots);
    Lanes scales[kTiles];
    for (int t = 0; t < kTiles; ++t) scales[t] = load_scale(c.tiles[t].scales, group, c.half);
    for (int r = 0; r < kRows; ++r) {
      const Lanes scale = splat(terms.scale[r * kMostSegments + term]);
      const Lanes minus_bias = splat(terms.minus_bias[r * kMostSegments + term]);
      for (int t = 0; t < kTiles; ++t) {
        acc[r][t] = fma(scale_dots(dots[r][t], scale, minus_bias), scales[t], acc[r][t]);
      }
    }
    if (c.tiles[0].minimums != nullptr) {
      for (int t = 0; t < kTiles; ++t) {
        const Lanes minimum = load_scale(c.tiles[t].minimums, group, c.half);
        for (int r = 0; r < kRows; ++r) {
          acc[r][t] = fma(minimum, splat(terms.scaled_sum[r * kMostSegments + term]), acc[r][t]);
        }
      }
    }
    if (--left == 0) {
      ++group;
      left = per_group;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) store(c.acc + r * c.acc_stride + t * kTileRows, acc[r][t]);
  }
}

// Rows [row, end) of the terms in register blocks of kRows, then of fewer, down to one.
template <Codes kCodes, int kRows, int kTiles>
void multiply_segment_rows(IntegerChunk c, const SegmentTerms& terms, int row, int end) {
  for (; row + kRows <= end; row += kRows) {
    multiply_segments<kCodes, kRows, kTiles>(c, terms, row);
    c.x += kRows * c.x_stride;
    c.acc += kRows * c.acc_stride;
  }
  if constexpr (kRows > 1)
    multiply_segment_rows<kCodes, kRows == 6 ? 4 : kRows / 2, kTiles>(c, terms, row, end);
}

KERNEL_INLINE void find_terms(const ActivationView& x, const PackedMatrix& w, int64_t row, int n_rows,
                              int64_t column, int64_t n, SegmentTerms& out) {
  const int32_t offset =
      (w.zero_point > 0 ? w.zero_point : 0) - (w.format == Format::kInt8 ? kInt8Offset : 0);
  if (segment_of(w) == 16) {
    find_terms<16>(x, offset, row, n_rows, column, n, out);
  } else {
    find_terms<32>(x, offset, row, n_rows, column, n, out);
  }
}

KERNEL_INLINE IntegerChunk chunk_of(const MatmulTask& task, int64_t row, const Tile* tiles, int64_t column) {
  const PackedMatrix& w = *task.weights;
  IntegerChunk c{};
  c.x = static_cast<const int8_t*>(task.input.values) + row * task.input.stride + column;
  c.x_stride = task.input.stride;
  c.codes = reinterpret_cast<const uint8_t*>(tiles[0].codes) + column * kTileRows * bits(w.format) / 8;
  c.tile_stride = w.tile_bytes();
  c.tiles = tiles;
  c.group = w.group;
  c.segment = segment_of(w);
  c.first_column = column;
  const int64_t n = chunk_columns(w);
  c.n_columns = w.padded_inputs - column < n ? w.padded_inputs - column : n;
  c.half = w.scale_format == Format::kF16;
  return c;
}

// At most kIntegerRows rows (one, when kTiles is beyond kIntegerTiles) by kTiles tiles, straight from the
// packed codes: a run of memory is read once.
template <Codes kCodes, int kTiles>
void multiply_few_rows(const MatmulTask& task, int64_t row, int n_rows, int64_t tile) {
  alignas(64) float acc[kIntegerRows * kTiles * kTileRows];
  SegmentTerms terms;
  Tile tiles[kTiles];
  for (int t = 0; t < kTiles; ++t) tiles[t] = tile_of(*task.weights, tile + t);
  std::memset(acc, 0, static_cast<size_t>(n_rows) * kTiles * kTileRows * sizeof(float));
  for (int64_t k = 0; k < task.weights->padded_inputs; k += chunk_columns(*task.weights)) {
    IntegerChunk c = chunk_of(task, row, tiles, k);
    c.acc = acc;
    c.acc_stride = int64_t{kTiles} * kTileRows;
    find_terms(task.input, *task.weights, row, n_rows, k, c.n_columns, terms);
    if constexpr (kTiles > kIntegerTiles) {
      multiply_segments<kCodes, 1, kTiles>(c, terms, 0);
    } else {
      multiply_segment_rows<kCodes, kIntegerRows, kTiles>(c, terms, 0, n_rows);
    }
  }
  for (int r = 0; r < n_rows; ++r) {
    for (int t = 0; t < kTiles; ++t)
      finish_tile(task, row + r, tile + t, load(acc + (r * kTiles + t) * kTileRows));
  }
}

template <Codes kCodes, int kTiles>
void multiply_few_rows(const MatmulTask& task, const MatmulBlock& b, int64_t tile, int64_t end) {
  for (; tile + kTiles <= end; tile += kTiles)
    multiply_few_rows<kCodes, kTiles>(task, b.first_row, static_cast<int>(b.n_rows), tile);
  if constexpr (kTiles > 1) multiply_few_rows<kCodes, kTiles - 1>(task, b, tile, end);
}

// int4 codes of a chunk as bytes, in the order of int8.
KERNEL_INLINE void unpack_codes(const uint8_t* codes, int64_t n_columns, uint8_t* out) {
  for (int64_t k = 0; k < n_columns; k += 8, codes += 64, out += 128) {
    WeightBytes low, high;
    load_code_halves(codes, low, high);
    store_codes(out, low);
    store_codes(out + 64, high);
  }
}

// n_tiles tiles in register blocks of kTiles, then of fewer. The chunk of one block of tiles stays in the
// nearest cache while the rows pass.
template <Codes kCodes, int kTiles>
void multiply_segment_tiles(IntegerChunk c, const SegmentTerms& terms, int n_rows, int n_tiles) {
  for (; n_tiles >= kTiles; n_tiles -= kTiles) {
    multiply_segment_rows<kCodes, kIntegerRows, kTiles>(c, terms, 0, n_rows);
    c.codes += kTiles * c.tile_stride;
    c.tiles += kTiles;
    c.acc += kTiles * kTileRows;
  }
  if constexpr (kTiles > 1) multiply_segment_tiles<kCodes, kTiles - 1>(c, terms, n_rows, n_tiles);
}

// At most kMostRows rows by kMostTiles tiles.
template <Format kFormat>
void multiply_many_rows(const MatmulTask& task, int64_t row, int n_rows, int64_t tile, int n_tiles) {
  constexpr int64_t kRowStride = int64_t{kMostTiles} * kTileRows;
  constexpr bool kUnpack = kFormat == Format::kInt4;
  alignas(64) float acc[kMostRows * kRowStride];
  alignas(64) uint8_t panel[kUnpack ? kMostTiles * kIntegerChunk * kTileRows : 64];
  SegmentTerms terms;
  Tile tiles[kMostTiles];
  for (int t = 0; t < n_tiles; ++t) tiles[t] = tile_of(*task.weights, tile + t);
  std::memset(acc, 0, static_cast<size_t>(n_rows * kRowStride) * sizeof(float));
  for (int64_t k = 0; k < task.weights->padded_inputs; k += chunk_columns(*task.weights)) {
    IntegerChunk c = chunk_of(task, row, tiles, k);
    c.acc = acc;
    c.acc_stride = kRowStride;
    if constexpr (kUnpack) {
      for (int t = 0; t < n_tiles; ++t)
        unpack_codes(c.codes + t * c.tile_stride, c.n_columns, panel + t * kIntegerChunk * kTileRows);
      c.codes = panel;
      c.tile_stride = kIntegerChunk * kTileRows;
    }
    find_terms(task.input, *task.weights, row, n_rows, k, c.n_columns, terms);
    multiply_segment_tiles<kUnpack ? Codes::kNibbles : Codes::kBytes, kIntegerTiles>(c, terms, n_rows,
                                                                                     n_tiles);
  }
  // Row by row: the outputs of a row lie side by side, those of a tile pages apart.
  for (int r = 0; r < n_rows; ++r) {
    for (int t = 0; t < n_tiles; ++t)
      finish_tile(task, row + r, tile + t, load(acc + r * kRowStride + t * kTileRows));
  }
}

template <Format kFormat>
void matmul_integer(const MatmulTask& task, const MatmulBlock& b) {
  const int64_t end = b.first_tile + b.n_tiles;
  constexpr Codes kCodes = kFormat == Format::kInt4 ? Codes::kPackedNibbles : Codes::kBytes;
  if (b.n_rows == 1) return multiply_few_rows<kCodes, kIntegerVectorTiles>(task, b, b.first_tile, end);
  if (b.n_rows <= kIntegerRows) return multiply_few_rows<kCodes, kIntegerTiles>(task, b, b.first_tile, end);
  for (int64_t t = b.first_tile; t < end; t += kMostTiles) {
    const auto n_tiles = static_cast<int>(end - t < kMostTiles ? end - t : kMostTiles);
    for (int64_t r = 0; r < b.n_rows; r += kMostRows) {
      const auto n_rows = static_cast<int>(b.n_rows - r < kMostRows ? b.n_rows - r : kMostRows);
      multiply_many_rows<kFormat>(task, b.first_row + r, n_rows, t, n_tiles);
    }
  }
}
