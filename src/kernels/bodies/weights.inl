// A tile's weights as f32, for the products that are computed on dequantised weights.

template <Format kFormat>
constexpr int kUnit = kFormat == Format::kF32                               ? 1
                      : kFormat == Format::kF16 || kFormat == Format::kBF16 ? 2
                      : kFormat == Format::kInt4                            ? 8
                                                                            : 4;
static_assert(kTileRows == 16);  // one unit of a tile is 64 bytes

// Where one tile of a matrix lies.
struct Tile {
  const std::byte* codes;
  const std::byte* scales;
  const std::byte* minimums;  // null: none
};

KERNEL_INLINE Tile tile_of(const PackedMatrix& w, int64_t tile) {
  const int64_t groups = tile * w.groups_per_row() * kTileRows * (w.scale_format == Format::kF16 ? 2 : 4);
  return {w.codes.data() + tile * w.tile_bytes(), w.scales.data() + groups,
          w.zero_point >= 0 || w.minimums.empty() ? nullptr : w.minimums.data() + groups};
}

KERNEL_INLINE Lanes load_scale(const std::byte* scales, int64_t group, bool half) {
  return half ? load_f16(reinterpret_cast<const uint16_t*>(scales) + group * kTileRows)
              : load(reinterpret_cast<const float*>(scales) + group * kTileRows);
}

// Turns codes into values: (code - zero point) * scale + minimum, each step rounded, as unpack_row does.
struct Dequantiser {
  Lanes zero_point, scale, minimum;
};

KERNEL_INLINE Dequantiser dequantiser_of(const PackedMatrix& w, const Tile& tile, int64_t column) {
  const bool half = w.scale_format == Format::kF16;
  const int64_t group = column / w.group;
  return {splat(static_cast<float>(w.zero_point > 0 ? w.zero_point : 0)),
          load_scale(tile.scales, group, half),
          tile.minimums == nullptr ? splat(0) : load_scale(tile.minimums, group, half)};
}

template <Format kFormat>
KERNEL_INLINE void load_weights(const Tile& tile, int64_t column, const Dequantiser& q, Lanes* out) {
  load_unit<kFormat>(tile.codes + column / kUnit<kFormat> * 64, out);
  if constexpr (is_integer(kFormat)) {
    for (int u = 0; u < kUnit<kFormat>; ++u) out[u] = add(mul(sub(out[u], q.zero_point), q.scale), q.minimum);
  }
}

// The result of one row and tile: bias, accumulation, and the lanes past the last output.
KERNEL_INLINE void finish_tile(const MatmulTask& task, int64_t row, int64_t tile, Lanes acc) {
  const int64_t output = tile * kTileRows;
  const int64_t left = task.weights->n_outputs - output;
  float* y = task.output + row * task.output_stride + output;
  if (left >= kTileRows) {
    if (task.bias != nullptr) acc = add(acc, load(task.bias + output));
    if (task.accumulate) acc = add(load(y), acc);
    store(y, acc);
    return;
  }
  const int n = static_cast<int>(left);
  if (task.bias != nullptr) acc = add(acc, load_first(task.bias + output, n));
  if (task.accumulate) acc = add(load_first(y, n), acc);
  store_first(y, acc, n);
}
