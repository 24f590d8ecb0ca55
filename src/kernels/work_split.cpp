#include "kernels/work_split.h"

#include <algorithm>

#include "base/units.h"

namespace assay {
namespace {

constexpr int64_t kBlocksPerThread = 4;
constexpr int64_t kVectorUnit = 4;  // tiles: a multiple of every table's register block for one row
constexpr int64_t kTileUnit = 12;   // and for many rows
constexpr int64_t kRowUnit = 6;     // a multiple of most tables' register blocks

}  // namespace

MatmulBlock MatmulGrid::block(int64_t index) const {
  const int64_t tile = index / row_blocks() * tiles_per_block;
  const int64_t row = index % row_blocks() * rows_per_block;
  return {.first_row = row,
          .n_rows = std::min(rows_per_block, n_rows - row),
          .first_tile = tile,
          .n_tiles = std::min(tiles_per_block, n_tiles - tile)};
}

MatmulGrid cut_matmul(const MatmulTask& task, int64_t all_tiles, int n_threads, const Tuning& tuning) {
  MatmulGrid grid;
  grid.n_rows = task.input.n_rows;
  grid.n_tiles = task.weights->n_tiles();
  const int64_t share = ceil_div(all_tiles, n_threads * kBlocksPerThread);
  grid.tiles_per_block = round_up(std::max<int64_t>(share, 1), grid.n_rows == 1 ? kVectorUnit : kTileUnit);
  grid.rows_per_block = std::max<int64_t>(grid.n_rows, 1);
  if (grid.n_rows > tuning.rows_per_block) {
    grid.rows_per_block =
        round_up(ceil_div(grid.n_rows, ceil_div(grid.n_rows, tuning.rows_per_block)), kRowUnit);
    grid.tiles_per_block = std::min(grid.tiles_per_block, tuning.tiles_per_block);
  }
  return grid;
}

}  // namespace assay
