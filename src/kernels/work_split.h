// How a matmul is cut into blocks: pure arithmetic, so that it can be tested alone. Any cut gives the same
// bits; this one gives every thread a few blocks, each a run of memory long enough to stream. Thread safety:
// pure. Cost: none.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/tuning.h"

namespace assay {

// Blocks of one task: row chunks x tile chunks.
struct MatmulGrid {
  int64_t n_rows = 0, n_tiles = 0;
  int64_t rows_per_block = 1, tiles_per_block = 1;

  int64_t row_blocks() const { return (n_rows + rows_per_block - 1) / rows_per_block; }
  int64_t tile_blocks() const { return (n_tiles + tiles_per_block - 1) / tiles_per_block; }
  int64_t n_blocks() const { return row_blocks() * tile_blocks(); }
  // Blocks of one tile chunk follow one another, so that its weights are still near.
  MatmulBlock block(int64_t index) const;
};

// `all_tiles`: over every task of the same fork; n_threads >= 1.
MatmulGrid cut_matmul(const MatmulTask& task, int64_t all_tiles, int n_threads, const Tuning& tuning = {});

}  // namespace assay
