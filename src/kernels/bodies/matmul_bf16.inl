// bf16 weights x bf16 activations by VDPBF16PS: each lane adds the products of two columns at a time,
// ascending, for any number of rows. The instruction treats subnormal inputs as zero and rounds to nearest
// even (Intel SDM).

template <int kRows, int kTiles>
void multiply_bf16_block(const MatmulTask& task, int64_t row, int64_t tile) {
  const PackedMatrix& w = *task.weights;
  const int64_t stride = task.input.stride;
  const auto* x = static_cast<const uint16_t*>(task.input.values) + row * stride;
  const std::byte* codes[kTiles];
  for (int t = 0; t < kTiles; ++t) codes[t] = tile_of(w, tile + t).codes;
  Lanes acc[kRows][kTiles];
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) acc[r][t] = splat(0);
  }
  for (int64_t k = 0; k < w.padded_inputs; k += 2) {
    __m512i weights[kTiles];
    for (int t = 0; t < kTiles; ++t) weights[t] = _mm512_loadu_si512(codes[t] + k * 32);
    for (int r = 0; r < kRows; ++r) {
      int32_t pair;
      std::memcpy(&pair, x + r * stride + k, 4);
      const __m512i both = _mm512_set1_epi32(pair);
      for (int t = 0; t < kTiles; ++t) {
        acc[r][t] = _mm512_dpbf16_ps(acc[r][t], (__m512bh)weights[t], (__m512bh)both);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) finish_tile(task, row + r, tile + t, acc[r][t]);
  }
}

template <int kRows, int kTiles>
void multiply_bf16_rows(const MatmulTask& task, int64_t row, int64_t end, int64_t tile) {
  for (; row + kRows <= end; row += kRows) multiply_bf16_block<kRows, kTiles>(task, row, tile);
  if constexpr (kRows > 1) multiply_bf16_rows<kRows / 2, kTiles>(task, row, end, tile);
}

void matmul_bf16(const MatmulTask& task, const MatmulBlock& b) {
  int64_t tile = b.first_tile;
  const int64_t end = b.first_tile + b.n_tiles, end_row = b.first_row + b.n_rows;
  for (; b.n_rows == 1 && tile + kFloatVectorTiles <= end; tile += kFloatVectorTiles) {
    multiply_bf16_block<1, kFloatVectorTiles>(task, b.first_row, tile);
  }
  for (; tile + kFloatTiles <= end; tile += kFloatTiles) {
    multiply_bf16_rows<kFloatRows, kFloatTiles>(task, b.first_row, end_row, tile);
  }
  for (; tile < end; ++tile) multiply_bf16_rows<kFloatRows, 1>(task, b.first_row, end_row, tile);
}
