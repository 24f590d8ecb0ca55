// Which blocks of a weight matrix are kept when half of it is dropped. A block is 16 outputs (a packed tile of
// kernels) by 32 inputs (a group of the activations), so that kernels skip whole tile rows.
//
// A block's importance is the sum over its weights of w^2, or of w^2 * E[x^2] when second moments of the
// inputs are given: the expected square of what dropping it takes from the outputs, inputs being taken as
// uncorrelated (Sun et al., "A simple and effective pruning approach", 2023, squared and by block).
//
// prune_blockwise: in each tile of outputs and each span of inputs the same number of blocks is kept, the most
//   important ones. Every tile costs the same.
// prune_global: blocks compete over the whole matrix. Rebalancing: each tile first keeps its best quarter; the
//   rest of the budget then goes to the most important blocks of all that are left, passing over tiles that
//   have three quarters already. So no tile costs more than 1.5 times the average.
//
// Equal importances are broken in favour of the lower index. Pure; thread safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace assay {

inline constexpr int64_t kBlockRows = 16;
inline constexpr int64_t kBlockCols = 32;

struct BlockMask {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<uint8_t> kept;  // [tiles, blocks], 1 or 0

  int64_t tiles() const { return (rows + kBlockRows - 1) / kBlockRows; }
  int64_t blocks() const { return (cols + kBlockCols - 1) / kBlockCols; }
  bool keeps(int64_t tile, int64_t block) const {
    return kept[static_cast<size_t>(tile * blocks() + block)] != 0;
  }
  int64_t n_kept(int64_t tile) const;
  int64_t n_kept() const;
};

// values: [rows, cols], finite; column_moments: E[x^2] per input, [cols] or empty. Both keep the share `keep`
// of the blocks, rounded up. kInvalidArgument for a shape that does not fit, a share outside 0..1.
// span_blocks: blocks of a span; 0: the whole row.
Result<BlockMask> prune_blockwise(std::span<const float> values, int64_t rows, int64_t cols,
                                  std::span<const float> column_moments, double keep = 0.5,
                                  int64_t span_blocks = 0);
Result<BlockMask> prune_global(std::span<const float> values, int64_t rows, int64_t cols,
                               std::span<const float> column_moments, double keep = 0.5);

}  // namespace assay
