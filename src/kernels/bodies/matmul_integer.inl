// int8 activations x int8 or int4 weights: exact integer dot products over a segment (32 columns, or 16 when
// the weights' group is 16), then one or two f32 additions per segment, in ascending order. kernel_table.h
// has the formula.

template <Format kFormat, int kSegment, int kRows, int kTiles>
KERNEL_INLINE void dot_segment(const Tile* tiles, int64_t column, const int8_t* x, int64_t x_stride,
                               Ints (&dots)[kRows][kTiles]) {
  constexpr int kStep = kUnit<kFormat>;
  for (int k = 0; k < kSegment; k += kStep) {
    for (int t = 0; t < kTiles; ++t) {
      const auto* codes = reinterpret_cast<const uint8_t*>(tiles[t].codes) + (column + k) / kStep * 64;
      if constexpr (kFormat == Format::kInt4) {
        WeightBytes low, high;
        load_code_halves(codes, low, high);
        for (int r = 0; r < kRows; ++r) {
          const int8_t* at = x + r * x_stride + column + k;
          dots[r][t] = dot4<kFormat>(dot4<kFormat>(dots[r][t], low, at), high, at + 4);
        }
      } else {
        const WeightBytes w = load_codes<kFormat>(codes);
        for (int r = 0; r < kRows; ++r)
          dots[r][t] = dot4<kFormat>(dots[r][t], w, x + r * x_stride + column + k);
      }
    }
  }
}

// The sum of a segment's activation codes.
template <int kSegment>
KERNEL_INLINE int32_t segment_sum(const int32_t* sums, int64_t column) {
  const int32_t first = sums[column / 16];
  return kSegment == 16 ? first : first + sums[column / 16 + 1];
}

template <Format kFormat, int kSegment, int kRows, int kTiles>
void multiply_integer_block(const MatmulTask& task, int64_t row, int64_t tile) {
  const PackedMatrix& w = *task.weights;
  const int64_t stride = task.input.stride;
  const auto* x = static_cast<const int8_t*>(task.input.values) + row * stride;
  const float* x_scales = task.input.scales + row * stride / kActivationGroup;
  const int32_t* x_sums = task.input.sums + row * stride / 16;
  const bool half = w.scale_format == Format::kF16;
  const int32_t offset = (w.zero_point > 0 ? w.zero_point : 0) - (kFormat == Format::kInt8 ? kInt8Offset : 0);
  Tile tiles[kTiles];
  for (int t = 0; t < kTiles; ++t) tiles[t] = tile_of(w, tile + t);
  Lanes acc[kRows][kTiles];
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) acc[r][t] = splat(0);
  }
  for (int64_t k = 0; k < w.padded_inputs; k += kSegment) {
    Ints dots[kRows][kTiles];
    for (int r = 0; r < kRows; ++r) {
      for (int t = 0; t < kTiles; ++t) dots[r][t] = zero_ints();
    }
    dot_segment<kFormat, kSegment, kRows, kTiles>(tiles, k, x, stride, dots);
    const int64_t group = k / w.group;
    for (int t = 0; t < kTiles; ++t) {
      const Lanes scale = load_scale(tiles[t].scales, group, half);
      for (int r = 0; r < kRows; ++r) {
        const int32_t sum = segment_sum<kSegment>(x_sums + r * stride / 16, k);
        const float x_scale = x_scales[(r * stride + k) / kActivationGroup];
        acc[r][t] = fma(to_lanes(sub_ints(dots[r][t], offset * sum)), mul(scale, splat(x_scale)), acc[r][t]);
      }
      if (tiles[t].minimums == nullptr) continue;
      const Lanes minimum = load_scale(tiles[t].minimums, group, half);
      for (int r = 0; r < kRows; ++r) {
        const auto sum = static_cast<float>(segment_sum<kSegment>(x_sums + r * stride / 16, k));
        const float x_scale = x_scales[(r * stride + k) / kActivationGroup];
        acc[r][t] = fma(minimum, splat(x_scale * sum), acc[r][t]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) finish_tile(task, row + r, tile + t, acc[r][t]);
  }
}

template <Format kFormat, int kSegment, int kRows, int kTiles>
void multiply_integer_rows(const MatmulTask& task, int64_t row, int64_t end, int64_t tile) {
  for (; row + kRows <= end; row += kRows) {
    multiply_integer_block<kFormat, kSegment, kRows, kTiles>(task, row, tile);
  }
  if constexpr (kRows > 1) multiply_integer_rows<kFormat, kSegment, kRows / 2, kTiles>(task, row, end, tile);
}

template <Format kFormat, int kSegment>
void multiply_integer(const MatmulTask& task, const MatmulBlock& b) {
  int64_t tile = b.first_tile;
  const int64_t end = b.first_tile + b.n_tiles, end_row = b.first_row + b.n_rows;
  if constexpr (kIntegerVectorTiles > kIntegerTiles) {
    for (; b.n_rows == 1 && tile + kIntegerVectorTiles <= end; tile += kIntegerVectorTiles) {
      multiply_integer_block<kFormat, kSegment, 1, kIntegerVectorTiles>(task, b.first_row, tile);
    }
  }
  for (; tile + kIntegerTiles <= end; tile += kIntegerTiles) {
    multiply_integer_rows<kFormat, kSegment, kIntegerRows, kIntegerTiles>(task, b.first_row, end_row, tile);
  }
  if constexpr (kIntegerTiles > 1) {
    for (; tile < end; ++tile) {
      multiply_integer_rows<kFormat, kSegment, kIntegerRows, 1>(task, b.first_row, end_row, tile);
    }
  }
}

template <Format kFormat>
void matmul_integer(const MatmulTask& task, const MatmulBlock& b) {
  if (task.weights->group == 16) {
    multiply_integer<kFormat, 16>(task, b);
  } else {
    multiply_integer<kFormat, 32>(task, b);
  }
}
