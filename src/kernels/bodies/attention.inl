// Attention over pages: for each split, an online softmax over key blocks (Milakov and Gimelshein, 2018; the
// blocking of Dao et al., 2022). A row is one query head of one query: rows are independent, and each sees
// only its visible keys, so what else is computed beside it cannot matter.
//
// A tile of rows takes a key block in three steps while both are near: scores, weights, values. Few rows read
// the pages' codes directly; many share blocks that are decoded to f32 once.

constexpr int kRowsAtOnce = kAttentionRowsPerBlock;
// From so many rows on, decoding to f32 once costs less than decoding in the registers of every tile.
constexpr int kDecodedRows = 2 * kAttentionRows + 1;

// 2^x for x <= 0 within 3 units of 2^-24, below 2^-126 zero; NaN stays NaN. Polynomial of degree 6 on [-1/2,
// 1/2], minimax for the relative error (2.6e-9) with p(0) = 1.
KERNEL_INLINE Lanes power_of_two(const Lanes& x) {
  const Lanes k = round_even(max(splat(-150.0F), x));
  const Lanes r = sub(x, k);
  Lanes p = splat(0x1.470b4ap-13F);
  p = fma(p, r, splat(0x1.5f7276p-10F));
  p = fma(p, r, splat(0x1.3b270ep-7F));
  p = fma(p, r, splat(0x1.c6ae72p-5F));
  p = fma(p, r, splat(0x1.ebfbe2p-3F));
  p = fma(p, r, splat(0x1.62e432p-1F));
  p = fma(p, r, splat(1.0F));
  return zero_below(x, -126.0F, scale_by_power(p, k));
}
KERNEL_INLINE float power_of_two_of(float x) {
  float out[16];
  store(out, power_of_two(splat(x)));
  return out[0];
}

constexpr float kLog2E = 1.44269504088896340736F;

// Consecutive rows of a block: row i is query i / sharers, head i % sharers.
struct RowRange {
  int first_row = 0, n_rows = 0;
  int sharers = 1;     // query heads per KV head
  int padded_dim = 0;  // head_dim rounded up to 16
  int64_t stride = 0;  // of partials
};

// What one thread needs besides partials: the rows' queries as the keys' format wants them, and a key block.
struct RowBlock {
  alignas(64) float floats[kRowsAtOnce * kMaxHeadDim];   // QueryTile::floats, tile after tile
  alignas(64) int8_t quads[kRowsAtOnce * kMaxHeadDim * 2];  // QueryTile::quads
  IntegerQueries integers[kRowsAtOnce];
  QueryTile tiles[kRowsAtOnce];
  int n_tiles = 0;
  int positions[kRowsAtOnce];
  alignas(64) float keys[kKeyBlock * kMaxHeadDim];    // f32 tiles of keys
  alignas(64) float values[kKeyBlock * kMaxHeadDim];  // f32 tiles of values
};

KERNEL_INLINE RowRange row_range(const AttentionShape& shape, int first_row, int n_rows) {
  return {first_row, n_rows, shape.n_heads / shape.n_kv_heads, kv_padded_dim(shape.head_dim),
          partial_stride(shape.head_dim)};
}

// Tiles of kAttentionRows; what remains is one tile, or two where no kernel has that many rows.
KERNEL_INLINE int tile_rows(int n_left) {
  if (n_left >= kAttentionRows) return kAttentionRows;
  return n_left == 5 ? 4 : n_left;
}

void prepare_rows(const AttentionShape& shape, const AttentionTask& task, const AttentionBlock& b,
                  const RowRange& range, RowBlock& rows) {
  const bool integer = is_integer(task.kv.key_format);
  const float scale = shape.soft_cap > 0 ? shape.scale : shape.scale * kLog2E;
  alignas(64) float query[kMaxHeadDim];
  for (int d = shape.head_dim; d < range.padded_dim; ++d) query[d] = 0;
  rows.n_tiles = 0;
  for (int first = 0; first < range.n_rows;) {
    QueryTile& tile = rows.tiles[rows.n_tiles];
    tile = {tile_rows(range.n_rows - first), rows.floats + int64_t{first} * range.padded_dim,
            rows.quads + int64_t{first} * range.padded_dim * 2, rows.integers + rows.n_tiles};
    ++rows.n_tiles;
    for (int r = 0; r < tile.n_rows; ++r, ++first) {
      const int index = b.first_query + (range.first_row + first) / range.sharers;
      const int head = b.kv_head * range.sharers + (range.first_row + first) % range.sharers;
      rows.positions[first] = task.first_position + index;
      const float* x = task.queries + index * task.query_stride + int64_t{head} * shape.head_dim;
      if (integer) {
        std::memcpy(query, x, static_cast<size_t>(shape.head_dim) * sizeof(float));
        quantise_query(query, scale, range.padded_dim, r, tile);
        continue;
      }
      for (int d = 0; d < range.padded_dim; ++d)
        tile.floats[d * tile.n_rows + r] = d < shape.head_dim ? x[d] * scale : 0;
    }
  }
}

KERNEL_INLINE Visible visible_keys(const AttentionShape& shape, int position, int block_first) {
  const int oldest = shape.window > 0 && position >= shape.window ? position - shape.window + 1 : 0;
  const int first = oldest > block_first ? oldest - block_first : 0;
  const int end = position + 1 - block_first < kKeyBlock ? position + 1 - block_first : kKeyBlock;
  return {first, end > first ? end : first};
}

// Turns scores of one row into weights 2^(score - largest so far); returns by how much the largest grew, as the
// power of two to multiply by.
KERNEL_INLINE float weigh_row(const AttentionShape& shape, const Visible& seen, float* scores, float& largest,
                              float& block_sum) {
  Lanes s[kKeyBlock / 16];
  const bool whole = seen.first == 0 && seen.end == kKeyBlock;
  for (int v = 0; v < kKeyBlock / 16; ++v) {
    s[v] = load(scores + 16 * v);
    if (shape.soft_cap > 0) {
      s[v] = mul(splat(shape.soft_cap * kLog2E), hyperbolic_tangent(div(s[v], splat(shape.soft_cap))));
    }
    if (!whole) s[v] = keep_between(s[v], seen.first - 16 * v, seen.end - 16 * v, kMinusInfinity);
  }
  const Lanes best = max(max(s[0], s[1]), max(s[2], s[3]));
  const float found = reduce_max(best);
  const float most = found > largest ? found : largest;
  Lanes e[kKeyBlock / 16];
  for (int v = 0; v < kKeyBlock / 16; ++v) {
    e[v] = power_of_two(sub(s[v], splat(most)));
    store(scores + 16 * v, e[v]);
  }
  block_sum = reduce_add(add(add(e[0], e[1]), add(e[2], e[3])));
  const float grown = largest - most;
  largest = most;
  return grown;
}

// Weights of a tile's rows; corrections: what their sums so far are multiplied by.
template <int kRows>
KERNEL_INLINE void weigh_tile(const AttentionShape& shape, const Visible* seen, float* scores, float* partials,
                              int64_t stride, int padded_dim, float* corrections) {
  static_assert(kKeyBlock == 64 && kRows <= 16);
  float sums[kRows];
  alignas(64) float grown[16] = {};
  for (int r = 0; r < kRows; ++r) {
    sums[r] = 0;
    if (seen[r].end <= seen[r].first) continue;
    grown[r] = weigh_row(shape, seen[r], scores + r * kKeyBlock, partials[r * stride + padded_dim], sums[r]);
  }
  // The first block's correction is 2^-infinity = 0, on zeros.
  alignas(64) float powers[16];
  store(powers, power_of_two(load(grown)));
  for (int r = 0; r < kRows; ++r) {
    corrections[r] = powers[r];
    float& sum = partials[r * stride + padded_dim + 1];
    if (seen[r].end > seen[r].first) sum = sum * corrections[r] + sums[r];
  }
}

struct BlockFormats {
  Format keys = Format::kF32, values = Format::kF32;
};

template <int kRows>
KERNEL_INLINE void score_rows(Format format, const QueryTile& queries, int padded_dim, const BlockTiles& block,
                              int first, int end, float* scores) {
  switch (format) {
    case Format::kF32:
      return score_tile<Format::kF32, kRows>(queries, padded_dim, block, first, end, scores);
    case Format::kF16:
      return score_tile<Format::kF16, kRows>(queries, padded_dim, block, first, end, scores);
    case Format::kBF16:
      return score_tile<Format::kBF16, kRows>(queries, padded_dim, block, first, end, scores);
    case Format::kFp8E4M3:
      return score_tile<Format::kFp8E4M3, kRows>(queries, padded_dim, block, first, end, scores);
    case Format::kFp8E5M2:
      return score_tile<Format::kFp8E5M2, kRows>(queries, padded_dim, block, first, end, scores);
    case Format::kInt8:
      return score_tile<Format::kInt8, kRows>(queries, padded_dim, block, first, end, scores);
    case Format::kInt4:
      return score_tile<Format::kInt4, kRows>(queries, padded_dim, block, first, end, scores);
    case Format::kCount:
      return;
  }
}

template <int kRows>
KERNEL_INLINE void add_row_values(Format format, const ValueTile& rows, const BlockTiles& block,
                                  int padded_dim) {
  switch (format) {
    case Format::kF32:
      return add_value_tile<Format::kF32, kRows>(rows, block, padded_dim);
    case Format::kF16:
      return add_value_tile<Format::kF16, kRows>(rows, block, padded_dim);
    case Format::kBF16:
      return add_value_tile<Format::kBF16, kRows>(rows, block, padded_dim);
    case Format::kFp8E4M3:
      return add_value_tile<Format::kFp8E4M3, kRows>(rows, block, padded_dim);
    case Format::kFp8E5M2:
      return add_value_tile<Format::kFp8E5M2, kRows>(rows, block, padded_dim);
    case Format::kInt8:
      return add_value_tile<Format::kInt8, kRows>(rows, block, padded_dim);
    case Format::kInt4:
      return add_value_tile<Format::kInt4, kRows>(rows, block, padded_dim);
    case Format::kCount:
      return;
  }
}

template <int kRows>
void attend_tile(const AttentionShape& shape, const QueryTile& queries, const int* positions, int block_first,
                 const BlockTiles& block, BlockFormats formats, int padded_dim, float* partials,
                 int64_t stride) {
  Visible seen[kRows];
  int first = kKeyBlock, end = 0;
  for (int r = 0; r < kRows; ++r) {
    seen[r] = visible_keys(shape, positions[r], block_first);
    if (seen[r].end <= seen[r].first) continue;
    first = seen[r].first < first ? seen[r].first : first;
    end = seen[r].end > end ? seen[r].end : end;
  }
  if (end <= first) return;
  alignas(64) float scores[kRows * kKeyBlock];
  float corrections[kRows];
  score_rows<kRows>(formats.keys, queries, padded_dim, block, first / 16, (end + 15) / 16, scores);
  weigh_tile<kRows>(shape, seen, scores, partials, stride, padded_dim, corrections);
  add_row_values<kRows>(formats.values, {seen, scores, corrections, partials, stride}, block, padded_dim);
}

using AttendTile = void (*)(const AttentionShape& shape, const QueryTile& queries, const int* positions,
                            int block_first, const BlockTiles& block, BlockFormats formats, int padded_dim,
                            float* partials, int64_t stride);

template <int kRows>
constexpr AttendTile attend_tile_of() {
  if constexpr (kRows <= kAttentionRows) return attend_tile<kRows>;
  return nullptr;
}
constexpr AttendTile kAttendTiles[] = {nullptr,
                                       attend_tile_of<1>(),
                                       attend_tile_of<2>(),
                                       attend_tile_of<3>(),
                                       attend_tile_of<4>(),
                                       nullptr,
                                       attend_tile_of<6>()};

template <Format kFormat>
void decode_tile(const std::byte* tile, int padded_dim, bool keys, float* out) {
  constexpr int kUnit = kv_unit(kFormat);
  // A row of cells of keys is unit rows of f32 cells; of values, unit rows that lie padded_dim apart.
  const int n_rows = padded_dim / kUnit;
  for (int i = 0; i < n_rows; ++i) {
    Lanes values[kUnit];
    decode_cells<kFormat>(tile + int64_t{i} * 64, values);
    const int per_row = padded_dim / 16;
    float* to = keys ? out + i * kUnit * 16 : out + i / per_row * kUnit * padded_dim + i % per_row * 16;
    for (int u = 0; u < kUnit; ++u) store(to + u * (keys ? 16 : padded_dim), values[u]);
  }
}

// One tile in f32; integer formats are not decoded.
void decode_tile_of(Format format, const std::byte* tile, int padded_dim, bool keys, float* out) {
  switch (format) {
    case Format::kF16:
      return decode_tile<Format::kF16>(tile, padded_dim, keys, out);
    case Format::kBF16:
      return decode_tile<Format::kBF16>(tile, padded_dim, keys, out);
    case Format::kFp8E4M3:
      return decode_tile<Format::kFp8E4M3>(tile, padded_dim, keys, out);
    case Format::kFp8E5M2:
      return decode_tile<Format::kFp8E5M2>(tile, padded_dim, keys, out);
    case Format::kF32:
    case Format::kInt8:
    case Format::kInt4:
    case Format::kCount:
      return;
  }
}

KERNEL_INLINE bool decodes_to_f32(Format format) {
  return !is_integer(format) && format != Format::kF32;
}

// The tiles of keys (or values) from position `first` to `end`, decoded to f32 where many rows share them.
KERNEL_INLINE Format find_tiles(const KvView& kv, bool keys, int kv_head, int first, int end, bool decoded,
                                float* out, const std::byte** tiles) {
  const Format format = keys ? kv.key_format : kv.value_format;
  const int padded = kv_padded_dim(kv.head_dim);
  const bool decodes = decoded && decodes_to_f32(format);
  for (int v = 0; first + 16 * v < end; ++v) {
    tiles[v] = kv_tile(kv, keys, kv_head, first + 16 * v);
    if (!decodes) continue;
    decode_tile_of(format, tiles[v], padded, keys, out + v * 16 * padded);
    tiles[v] = reinterpret_cast<const std::byte*>(out + v * 16 * padded);
  }
  return decodes ? Format::kF32 : format;
}

// Asks for a block's tiles before they are needed: pages lie apart, and hardware prefetchers stop at their ends.
KERNEL_INLINE void prefetch_tiles(const KvView& kv, bool keys, int kv_head, int first, int end) {
  const size_t bytes = kv_tile_bytes(keys ? kv.key_format : kv.value_format, kv.head_dim);
  for (int p = first; p < end; p += kKvTile) {
    const std::byte* tile = kv_tile(kv, keys, kv_head, p);
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(tile + at, 0, 2);
  }
}

// Positions whose keys some row of the range sees, [first, end).
KERNEL_INLINE Visible visible_positions(const AttentionShape& shape, const AttentionTask& task,
                                        const AttentionBlock& b, const RowRange& range) {
  const int oldest = task.first_position + b.first_query + range.first_row / range.sharers;
  const int newest =
      task.first_position + b.first_query + (range.first_row + range.n_rows - 1) / range.sharers;
  return {shape.window > 0 && oldest >= shape.window ? oldest - shape.window + 1 : 0, newest + 1};
}

// The prepared rows against one split.
void attend_rows(const AttentionShape& shape, const AttentionTask& task, const AttentionBlock& b,
                 const RowRange& range, int split, RowBlock& rows, float* partials) {
  for (int r = 0; r < range.n_rows; ++r) {
    float* partial = partials + r * range.stride;
    for (int d = 0; d < range.padded_dim; ++d) partial[d] = 0;
    partial[range.padded_dim] = kMinusInfinity;
    partial[range.padded_dim + 1] = 0;
  }
  const Visible all = visible_positions(shape, task, b, range);
  const int begin = split * kKeySplit > all.first ? split * kKeySplit : all.first / kKeyBlock * kKeyBlock;
  const int end = (split + 1) * kKeySplit < all.end ? (split + 1) * kKeySplit : all.end;
  const bool decoded = range.n_rows >= kDecodedRows;
  for (int first = begin; first < end; first += kKeyBlock) {
    const int next = first + kKeyBlock, block_end = next < end ? next : end;
    if (!decoded && next < end) {
      const int next_end = next + kKeyBlock < end ? next + kKeyBlock : end;
      prefetch_tiles(task.kv, true, b.kv_head, next, next_end);
      prefetch_tiles(task.kv, false, b.kv_head, next, next_end);
    }
    BlockTiles block;
    const BlockFormats formats{
        find_tiles(task.kv, true, b.kv_head, first, block_end, decoded, rows.keys, block.keys),
        find_tiles(task.kv, false, b.kv_head, first, block_end, decoded, rows.values, block.values)};
    int row = 0;
    for (int t = 0; t < rows.n_tiles; ++t) {
      const QueryTile& tile = rows.tiles[t];
      kAttendTiles[tile.n_rows](shape, tile, rows.positions + row, first, block, formats, range.padded_dim,
                                partials + row * range.stride, range.stride);
      row += tile.n_rows;
    }
  }
}

// Adds a split's state to the state of the splits before it.
KERNEL_INLINE void merge_row(const float* partial, int padded_dim, float* total) {
  const float largest = partial[padded_dim];
  if (partial[padded_dim + 1] == 0) return;  // the row sees nothing in this split
  if (total[padded_dim + 1] == 0) {
    std::memcpy(total, partial, static_cast<size_t>(padded_dim + 2) * sizeof(float));
    return;
  }
  const float new_largest = largest > total[padded_dim] ? largest : total[padded_dim];
  const float before = power_of_two_of(total[padded_dim] - new_largest);
  const float added = power_of_two_of(largest - new_largest);
  for (int d = 0; d < padded_dim; d += 16) {
    store(total + d, add(mul(load(total + d), splat(before)), mul(load(partial + d), splat(added))));
  }
  total[padded_dim + 1] = total[padded_dim + 1] * before + partial[padded_dim + 1] * added;
  total[padded_dim] = new_largest;
}

KERNEL_INLINE void write_row(const AttentionShape& shape, const AttentionTask& task, const AttentionBlock& b,
                             const RowRange& range, int row, const float* total) {
  const int query = b.first_query + row / range.sharers;
  const int head = b.kv_head * range.sharers + row % range.sharers;
  float* out = task.output + query * task.output_stride + int64_t{head} * shape.head_dim;
  const Lanes sum = splat(total[range.padded_dim + 1]);
  for (int d = 0; d < shape.head_dim; d += 16) {
    const int m = shape.head_dim - d < 16 ? shape.head_dim - d : 16;
    store_first(out + d, div(load(total + d), sum), m);
  }
}

void attention(const AttentionShape& shape, const AttentionTask& task, const AttentionBlock& b) {
  RowBlock rows;
  alignas(64) float partials[kRowsAtOnce * partial_stride(kMaxHeadDim)];
  alignas(64) float totals[kRowsAtOnce * partial_stride(kMaxHeadDim)];
  const int all_rows = b.n_queries * (shape.n_heads / shape.n_kv_heads);
  for (int first = 0; first < all_rows; first += kRowsAtOnce) {
    const RowRange range =
        row_range(shape, first, all_rows - first < kRowsAtOnce ? all_rows - first : kRowsAtOnce);
    prepare_rows(shape, task, b, range, rows);
    const Visible all = visible_positions(shape, task, b, range);
    for (int r = 0; r < range.n_rows; ++r) totals[r * range.stride + range.padded_dim + 1] = 0;
    for (int split = all.first / kKeySplit; split * kKeySplit < all.end; ++split) {
      attend_rows(shape, task, b, range, split, rows, partials);
      for (int r = 0; r < range.n_rows; ++r) {
        merge_row(partials + r * range.stride, range.padded_dim, totals + r * range.stride);
      }
    }
    for (int r = 0; r < range.n_rows; ++r)
      write_row(shape, task, b, range, first + r, totals + r * range.stride);
  }
}

void attention_split(const AttentionShape& shape, const AttentionTask& task, const AttentionBlock& b,
                     int split, float* partials) {
  RowBlock rows;
  const int all_rows = b.n_queries * (shape.n_heads / shape.n_kv_heads);
  for (int first = 0; first < all_rows; first += kRowsAtOnce) {
    const RowRange range =
        row_range(shape, first, all_rows - first < kRowsAtOnce ? all_rows - first : kRowsAtOnce);
    prepare_rows(shape, task, b, range, rows);
    attend_rows(shape, task, b, range, split, rows, partials + first * range.stride);
  }
}

void attention_merge(const AttentionShape& shape, const AttentionTask& task, const AttentionBlock& b,
                     const float* partials, int64_t split_stride, int n_splits) {
  alignas(64) float total[partial_stride(kMaxHeadDim)];
  const int all_rows = b.n_queries * (shape.n_heads / shape.n_kv_heads);
  const RowRange range = row_range(shape, 0, all_rows);
  for (int r = 0; r < all_rows; ++r) {
    total[range.padded_dim + 1] = 0;
    for (int s = 0; s < n_splits; ++s) {
      merge_row(partials + s * split_stride + r * range.stride, range.padded_dim, total);
    }
    write_row(shape, task, b, range, r, total);
  }
}
