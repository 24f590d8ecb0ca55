// Attention over pages: for each split, an online softmax over key blocks (Milakov and Gimelshein, 2018; the
// blocking of Dao et al., 2022). A row is one query head of one query: rows are independent, and each sees
// only its visible keys, so what else is computed beside it cannot matter.

constexpr int kRowsAtOnce = 64;

// One key block of one KV head in f32.
struct KeyBlock {
  alignas(64) float keys[kMaxHeadDim * kKeyBlock];    // [head_dim][kKeyBlock]
  alignas(64) float values[kKeyBlock * kMaxHeadDim];  // [kKeyBlock][padded head_dim]
  alignas(64) float rows[16 * kMaxHeadDim];           // sixteen keys before they are transposed
  int first = 0;                                      // position of its first key
  int n = 0;                                          // keys that exist; zeros behind them
};

// Consecutive rows of a block: row i is query i / sharers, head i % sharers.
struct RowRange {
  int first_row = 0, n_rows = 0;
  int sharers = 1;     // query heads per KV head
  int padded_dim = 0;  // head_dim rounded up to 16
  int64_t stride = 0;  // of partials
};

KERNEL_INLINE void decode_head(Format format, const std::byte* codes, float scale, int n, float* out) {
  for (int i = 0; i < n; i += 16) {
    const int m = n - i < 16 ? n - i : 16;
    const int width = format == Format::kF32 ? 4 : format == Format::kInt8 ? 1 : 2;
    alignas(64) std::byte tail[64];
    const std::byte* from = codes + i * width;
    if (m < 16) {
      std::memset(tail, 0, sizeof(tail));
      std::memcpy(tail, from, static_cast<size_t>(m * width));
      from = tail;
    }
    if (format == Format::kF32) {
      store(out + i, load(reinterpret_cast<const float*>(from)));
    } else if (format == Format::kF16) {
      store(out + i, load_f16(reinterpret_cast<const uint16_t*>(from)));
    } else if (format == Format::kBF16) {
      store(out + i, load_bf16(reinterpret_cast<const uint16_t*>(from)));
    } else {
      store(out + i, mul(load_signed_bytes(reinterpret_cast<const int8_t*>(from)), splat(scale)));
    }
  }
}

// The key (or value) of one position.
KERNEL_INLINE void decode_position(const KvView& kv, Format format, size_t offset, int kv_head, int position,
                                   float* out) {
  const std::byte* plane =
      kv.base + static_cast<size_t>(kv.blocks[position / kv.page_tokens]) * kv.block_bytes + offset;
  const int64_t slot = int64_t{kv_head} * kv.page_tokens + position % kv.page_tokens;
  float scale = 1;
  if (format == Format::kInt8) {
    const int64_t codes = int64_t{kv.n_kv_heads} * kv.page_tokens * kv.head_dim;
    std::memcpy(&scale, plane + codes + slot * 4, 4);
  }
  decode_head(format, plane + slot * kv.head_dim * bits(format) / 8, scale, kv.head_dim, out);
}

void load_key_block(const KvView& kv, int kv_head, int padded_dim, KeyBlock& block) {
  for (int group = 0; group < kKeyBlock; group += 16) {
    for (int i = 0; i < 16; ++i) {
      float* row = block.rows + i * kMaxHeadDim;
      if (group + i < block.n) {
        decode_position(kv, kv.key_format, kv.key_offset, kv_head, block.first + group + i, row);
      } else {
        std::memset(row, 0, static_cast<size_t>(padded_dim) * sizeof(float));
      }
    }
    for (int d = 0; d < padded_dim; d += 16) {
      transpose16(block.rows + d, kMaxHeadDim, block.keys + d * kKeyBlock + group, kKeyBlock);
    }
  }
  for (int i = 0; i < block.n; ++i) {
    decode_position(kv, kv.value_format, kv.value_offset, kv_head, block.first + i,
                    block.values + i * padded_dim);
  }
}

// scores[r][key] = queries[r] . key, over ascending dimension.
template <int kRows, int kVectors>
KERNEL_INLINE void score_rows(const float* const* queries, int head_dim, const float* keys, float* scores) {
  Lanes acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) acc[r][v] = splat(0);
  }
  for (int d = 0; d < head_dim; ++d) {
    Lanes key[kVectors];
    for (int v = 0; v < kVectors; ++v) key[v] = load(keys + d * kKeyBlock + 16 * v);
    for (int r = 0; r < kRows; ++r) {
      const Lanes q = splat(queries[r][d]);
      for (int v = 0; v < kVectors; ++v) acc[r][v] = fma(q, key[v], acc[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) store(scores + r * kKeyBlock + 16 * v, acc[r][v]);
  }
}

template <int kRows>
void score_block(const float* const* queries, int n_rows, int head_dim, const float* keys, float* scores) {
  for (; n_rows >= kRows; n_rows -= kRows, queries += kRows, scores += kRows * kKeyBlock) {
    for (int v = 0; v < kKeyBlock; v += 16 * kScoreVectors) {
      score_rows<kRows, kScoreVectors>(queries, head_dim, keys + v, scores + v);
    }
  }
  if constexpr (kRows > 1) score_block<kRows / 2>(queries, n_rows, head_dim, keys, scores);
}

KERNEL_INLINE float exponential_of(float x) {
  float out[16];
  store(out, exponential(splat(x)));
  return out[0];
}

struct Visible {
  int first = 0, end = 0;  // keys of the block, [first, end)
};

KERNEL_INLINE Visible visible_keys(const AttentionShape& shape, int position, const KeyBlock& block) {
  const int oldest = shape.window > 0 && position >= shape.window ? position - shape.window + 1 : 0;
  const int first = oldest > block.first ? oldest - block.first : 0;
  const int end = position + 1 - block.first < kKeyBlock ? position + 1 - block.first : kKeyBlock;
  return {first, end > first ? end : first};
}

// Turns one row's scores into weights exp(score - largest so far) and rescales what was accumulated.
KERNEL_INLINE void weigh_row(const AttentionShape& shape, const Visible& seen, float* scores, float* partial,
                             int padded_dim) {
  float& largest = partial[padded_dim];
  float& sum = partial[padded_dim + 1];
  Lanes s[kKeyBlock / 16];
  Lanes best = splat(largest);
  for (int v = 0; v < kKeyBlock / 16; ++v) {
    s[v] = mul(load(scores + 16 * v), splat(shape.scale));
    if (shape.soft_cap > 0) {
      s[v] = mul(splat(shape.soft_cap), hyperbolic_tangent(div(s[v], splat(shape.soft_cap))));
    }
    s[v] = keep_first(s[v], seen.end - 16 * v, kMinusInfinity);
    if (seen.first > 16 * v) {
      // Keys before the window: everything but the first `first` lanes is kept.
      float lanes[16];
      store(lanes, s[v]);
      for (int i = 0; i < 16 && 16 * v + i < seen.first; ++i) lanes[i] = kMinusInfinity;
      s[v] = load(lanes);
    }
    best = max(s[v], best);
  }
  const float new_largest = reduce_max(best);
  Lanes total = splat(0);
  for (int v = 0; v < kKeyBlock / 16; ++v) {
    const Lanes e = exponential(sub(s[v], splat(new_largest)));
    store(scores + 16 * v, e);
    total = add(total, e);
  }
  // The first block's correction is exp(-infinity) = 0, on zeros.
  const float correction = exponential_of(largest - new_largest);
  sum = sum * correction + reduce_add(total);
  largest = new_largest;
  for (int d = 0; d < padded_dim; d += 16) store(partial + d, mul(load(partial + d), splat(correction)));
}

// partial[r] += sum over ascending visible keys of weight * value.
template <int kRows, int kVectors>
KERNEL_INLINE void add_values(const float* scores, const Visible& seen, const float* values, int padded_dim,
                              float* partial, int64_t stride) {
  Lanes acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) acc[r][v] = load(partial + r * stride + 16 * v);
  }
  for (int k = seen.first; k < seen.end; ++k) {
    Lanes value[kVectors];
    for (int v = 0; v < kVectors; ++v) value[v] = load(values + k * padded_dim + 16 * v);
    for (int r = 0; r < kRows; ++r) {
      const Lanes w = splat(scores[r * kKeyBlock + k]);
      for (int v = 0; v < kVectors; ++v) acc[r][v] = fma(w, value[v], acc[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) store(partial + r * stride + 16 * v, acc[r][v]);
  }
}

template <int kRows>
KERNEL_INLINE void add_value_row(const float* scores, const Visible& seen, const float* values,
                                 int padded_dim, float* partial, int64_t stride) {
  int d = 0;
  for (; d + 16 * kValueVectors <= padded_dim; d += 16 * kValueVectors) {
    add_values<kRows, kValueVectors>(scores, seen, values + d, padded_dim, partial + d, stride);
  }
  for (; d < padded_dim; d += 16)
    add_values<kRows, 1>(scores, seen, values + d, padded_dim, partial + d, stride);
}

// Rows that see the same keys are taken kValueRows at a time.
void add_value_block(const float* scores, const Visible* seen, const KeyBlock& block, const RowRange& range,
                     float* partials) {
  for (int r = 0; r < range.n_rows;) {
    bool together = r + kValueRows <= range.n_rows;
    for (int i = 1; together && i < kValueRows; ++i) {
      together = seen[r + i].first == seen[r].first && seen[r + i].end == seen[r].end;
    }
    float* partial = partials + r * range.stride;
    if (together) {
      add_value_row<kValueRows>(scores + r * kKeyBlock, seen[r], block.values, range.padded_dim, partial,
                                range.stride);
      r += kValueRows;
    } else {
      add_value_row<1>(scores + r * kKeyBlock, seen[r], block.values, range.padded_dim, partial,
                       range.stride);
      ++r;
    }
  }
}

KERNEL_INLINE RowRange row_range(const AttentionShape& shape, int first_row, int n_rows) {
  const int padded = (shape.head_dim + 15) / 16 * 16;
  return {first_row, n_rows, shape.n_heads / shape.n_kv_heads, padded, partial_stride(shape.head_dim)};
}

// Positions whose keys some row of the range sees, [first, end).
KERNEL_INLINE Visible visible_positions(const AttentionShape& shape, const AttentionTask& task,
                                        const AttentionBlock& b, const RowRange& range) {
  const int oldest = task.first_position + b.first_query + range.first_row / range.sharers;
  const int newest =
      task.first_position + b.first_query + (range.first_row + range.n_rows - 1) / range.sharers;
  return {shape.window > 0 && oldest >= shape.window ? oldest - shape.window + 1 : 0, newest + 1};
}

// At most kRowsAtOnce rows against one split.
void attend_rows(const AttentionShape& shape, const AttentionTask& task, const AttentionBlock& b,
                 const RowRange& range, int split, KeyBlock& block, float* partials) {
  const float* queries[kRowsAtOnce];
  int positions[kRowsAtOnce];
  for (int r = 0; r < range.n_rows; ++r) {
    const int query = b.first_query + (range.first_row + r) / range.sharers;
    const int head = b.kv_head * range.sharers + (range.first_row + r) % range.sharers;
    queries[r] = task.queries + query * task.query_stride + int64_t{head} * shape.head_dim;
    positions[r] = task.first_position + query;
    float* partial = partials + r * range.stride;
    for (int d = 0; d < range.padded_dim; ++d) partial[d] = 0;
    partial[range.padded_dim] = kMinusInfinity;
    partial[range.padded_dim + 1] = 0;
  }
  alignas(64) float scores[kRowsAtOnce * kKeyBlock];
  Visible seen[kRowsAtOnce];
  const Visible all = visible_positions(shape, task, b, range);
  const int begin = split * kKeySplit > all.first ? split * kKeySplit : all.first / kKeyBlock * kKeyBlock;
  const int end = (split + 1) * kKeySplit < all.end ? (split + 1) * kKeySplit : all.end;
  for (block.first = begin; block.first < end; block.first += kKeyBlock) {
    block.n = end - block.first < kKeyBlock ? end - block.first : kKeyBlock;
    load_key_block(task.kv, b.kv_head, range.padded_dim, block);
    score_block<kScoreRows>(queries, range.n_rows, shape.head_dim, block.keys, scores);
    for (int r = 0; r < range.n_rows; ++r) {
      seen[r] = visible_keys(shape, positions[r], block);
      if (seen[r].end > seen[r].first) {
        weigh_row(shape, seen[r], scores + r * kKeyBlock, partials + r * range.stride, range.padded_dim);
      }
    }
    add_value_block(scores, seen, block, range, partials);
  }
}

// Adds a split's state to the state of the splits before it.
KERNEL_INLINE void merge_row(const float* partial, int padded_dim, float* total) {
  const float largest = partial[padded_dim];
  if (largest == kMinusInfinity) return;  // the row sees nothing in this split
  if (total[padded_dim] == kMinusInfinity) {
    std::memcpy(total, partial, static_cast<size_t>(padded_dim + 2) * sizeof(float));
    return;
  }
  const float new_largest = largest > total[padded_dim] ? largest : total[padded_dim];
  const float before = exponential_of(total[padded_dim] - new_largest);
  const float added = exponential_of(largest - new_largest);
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
  KeyBlock block;
  alignas(64) float partials[kRowsAtOnce * partial_stride(kMaxHeadDim)];
  alignas(64) float totals[kRowsAtOnce * partial_stride(kMaxHeadDim)];
  const int all_rows = b.n_queries * (shape.n_heads / shape.n_kv_heads);
  for (int first = 0; first < all_rows; first += kRowsAtOnce) {
    const RowRange range =
        row_range(shape, first, all_rows - first < kRowsAtOnce ? all_rows - first : kRowsAtOnce);
    const Visible all = visible_positions(shape, task, b, range);
    for (int r = 0; r < range.n_rows; ++r) totals[r * range.stride + range.padded_dim] = kMinusInfinity;
    for (int split = all.first / kKeySplit; split * kKeySplit < all.end; ++split) {
      attend_rows(shape, task, b, range, split, block, partials);
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
  KeyBlock block;
  const int all_rows = b.n_queries * (shape.n_heads / shape.n_kv_heads);
  for (int first = 0; first < all_rows; first += kRowsAtOnce) {
    const RowRange range =
        row_range(shape, first, all_rows - first < kRowsAtOnce ? all_rows - first : kRowsAtOnce);
    attend_rows(shape, task, b, range, split, block, partials + first * range.stride);
  }
}

void attention_merge(const AttentionShape& shape, const AttentionTask& task, const AttentionBlock& b,
                     const float* partials, int64_t split_stride, int n_splits) {
  alignas(64) float total[partial_stride(kMaxHeadDim)];
  const int all_rows = b.n_queries * (shape.n_heads / shape.n_kv_heads);
  const RowRange range = row_range(shape, 0, all_rows);
  for (int r = 0; r < all_rows; ++r) {
    total[range.padded_dim] = kMinusInfinity;
    for (int s = 0; s < n_splits; ++s) {
      merge_row(partials + s * split_stride + r * range.stride, range.padded_dim, total);
    }
    write_row(shape, task, b, range, r, total);
  }
}

void store_head(Format format, const float* x, int head_dim, std::byte* codes, float* scale) {
  switch (format) {
    case Format::kF32:
      std::memcpy(codes, x, static_cast<size_t>(head_dim) * sizeof(float));
      return;
    case Format::kBF16:
      to_bf16(x, head_dim, reinterpret_cast<uint16_t*>(codes));
      return;
    case Format::kF16: {
      auto* out = reinterpret_cast<uint16_t*>(codes);
      int i = 0;
      for (; i + 16 <= head_dim; i += 16) store_f16(out + i, load(x + i));
      for (; i < head_dim; ++i) out[i] = f32_to_f16_bits(x[i]);
      return;
    }
    case Format::kInt8:
      *scale = quantise_row(x, head_dim, reinterpret_cast<int8_t*>(codes));
      return;
    case Format::kFp8E4M3:
    case Format::kFp8E5M2:
    case Format::kInt4:
    case Format::kCount:
      break;
  }
}
