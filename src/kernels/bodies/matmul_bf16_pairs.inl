// bf16 activations x bf16 weights by VDPBF16PS: acc += w[k] * x[k] + w[k + 1] * x[k + 1] for a pair of columns at
// a time, ascending, in f32 with subnormals as zero (Intel SDM volume 2). On some CPUs
// faster than f32 FMA, on Emerald Rapids half its rate: tuning.h says which a backend takes.

struct AddPairs {
  static KERNEL_INLINE void to(Lanes& acc, Lanes w, Lanes x) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(acc) : "v"(w), "v"(x));
  }
};

// At most kPanelRows rows by kPanelTiles tiles.
void multiply_pairs(const MatmulTask& task, int64_t row, int n_rows, int64_t tile, int n_tiles) {
  const PackedMatrix& w = *task.weights;
  alignas(64) float acc[kPanelRows * kPanelStride];
  std::memset(acc, 0, sizeof(float) * static_cast<size_t>(n_rows * kPanelStride));
  const auto* x = static_cast<const uint16_t*>(task.input.values) + row * task.input.stride;
  const auto* weights = reinterpret_cast<const float*>(tile_of(w, tile).codes);
  for (int64_t k = 0; k < w.padded_inputs; k += 2 * kPanelChunk) {
    const int64_t n = w.padded_inputs - k < 2 * kPanelChunk ? w.padded_inputs - k : 2 * kPanelChunk;
    multiply_panel_tiles<AddPairs, kFloatTiles>(
        {reinterpret_cast<const float*>(x + k), task.input.stride / 2, weights + k / 2 * kTileRows,
         w.padded_inputs / 2 * kTileRows, n / 2, acc},
        n_rows, n_tiles);
  }
  for (int r = 0; r < n_rows; ++r) {
    for (int t = 0; t < n_tiles; ++t)
      finish_tile(task, row + r, tile + t, load(acc + r * kPanelStride + t * kTileRows));
  }
}

void matmul_bf16_pairs(const MatmulTask& task, const MatmulBlock& b) {
  const int64_t end = b.first_tile + b.n_tiles;
  for (int64_t t = b.first_tile; t < end; t += kPanelTiles) {
    const auto n_tiles = static_cast<int>(end - t < kPanelTiles ? end - t : kPanelTiles);
    for (int64_t r = 0; r < b.n_rows; r += kPanelRows) {
      const auto n_rows = static_cast<int>(b.n_rows - r < kPanelRows ? b.n_rows - r : kPanelRows);
      multiply_pairs(task, b.first_row + r, n_rows, t, n_tiles);
    }
  }
}
