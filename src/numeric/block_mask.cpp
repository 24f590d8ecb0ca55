#include "numeric/block_mask.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay {
namespace {

// Of a tile's blocks in prune_global.
constexpr double kLeastOfTile = 0.25, kMostOfTile = 0.75;

Result<void> check_shape(std::span<const float> values, int64_t rows, int64_t cols,
                         std::span<const float> column_moments, double keep) {
  uint64_t count = 0;
  if (rows < 0 || cols < 0 ||
      __builtin_mul_overflow(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), &count) ||
      count != values.size() ||
      (!column_moments.empty() && column_moments.size() != static_cast<uint64_t>(cols))) {
    return fail(ErrorCode::kInvalidArgument, "block mask",
                "[{}, {}] does not fit the {} values and {} moments given", rows, cols, values.size(),
                column_moments.size());
  }
  if (!(keep >= 0 && keep <= 1)) {
    return fail(ErrorCode::kInvalidArgument, "block mask", "expected a share of 0 to 1 to keep, found {}", keep);
  }
  return {};
}

BlockMask make_mask(int64_t rows, int64_t cols) {
  BlockMask mask{.rows = rows, .cols = cols, .kept = {}};
  mask.kept.resize(static_cast<size_t>(mask.tiles() * mask.blocks()));
  return mask;
}

// [tiles, blocks]
std::vector<double> importances(std::span<const float> values, const BlockMask& shape,
                                std::span<const float> column_moments) {
  std::vector<double> sums(shape.kept.size());
  for (int64_t row = 0; row < shape.rows; ++row) {
    double* of_tile = sums.data() + row / kBlockRows * shape.blocks();
    const float* w = values.data() + row * shape.cols;
    for (int64_t col = 0; col < shape.cols; ++col) {
      const double moment =
          column_moments.empty() ? 1.0 : static_cast<double>(column_moments[static_cast<size_t>(col)]);
      of_tile[col / kBlockCols] += static_cast<double>(w[col]) * static_cast<double>(w[col]) * moment;
    }
  }
  return sums;
}

// Indices [first, last) by falling importance.
std::vector<size_t> rank(std::span<const double> importance, int64_t first, int64_t last) {
  std::vector<size_t> order(static_cast<size_t>(last - first));
  std::iota(order.begin(), order.end(), static_cast<size_t>(first));
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return importance[i]; });
  return order;
}

int64_t share_of(double share, int64_t n) {
  return static_cast<int64_t>(std::ceil(share * static_cast<double>(n)));
}

}  // namespace

int64_t BlockMask::n_kept(int64_t tile) const {
  const auto first = kept.begin() + tile * blocks();
  return std::count(first, first + blocks(), uint8_t{1});
}

int64_t BlockMask::n_kept() const {
  return std::ranges::count(kept, uint8_t{1});
}

Result<BlockMask> prune_blockwise(std::span<const float> values, int64_t rows, int64_t cols,
                                  std::span<const float> column_moments, double keep, int64_t span_blocks) {
  RETURN_IF_ERROR(check_shape(values, rows, cols, column_moments, keep));
  BlockMask mask = make_mask(rows, cols);
  const std::vector<double> importance = importances(values, mask, column_moments);
  const int64_t blocks = mask.blocks();
  const int64_t span = span_blocks > 0 ? std::min(span_blocks, blocks) : blocks;
  for (int64_t tile = 0; tile < mask.tiles(); ++tile) {
    for (int64_t first = 0; first < blocks; first += span) {
      const int64_t last = std::min(first + span, blocks);
      const std::vector<size_t> order = rank(importance, tile * blocks + first, tile * blocks + last);
      for (int64_t i = 0; i < share_of(keep, last - first); ++i) mask.kept[order[static_cast<size_t>(i)]] = 1;
    }
  }
  return mask;
}

Result<BlockMask> prune_global(std::span<const float> values, int64_t rows, int64_t cols,
                               std::span<const float> column_moments, double keep) {
  RETURN_IF_ERROR(check_shape(values, rows, cols, column_moments, keep));
  BlockMask mask = make_mask(rows, cols);
  const std::vector<double> importance = importances(values, mask, column_moments);
  const int64_t blocks = mask.blocks(), tiles = mask.tiles();
  const int64_t least = share_of(std::min(kLeastOfTile, keep), blocks);
  const int64_t most = share_of(std::max(kMostOfTile, keep), blocks);
  int64_t left = share_of(keep, tiles * blocks);
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const std::vector<size_t> order = rank(importance, tile * blocks, (tile + 1) * blocks);
    for (int64_t i = 0; i < least && left > 0; ++i, --left) mask.kept[order[static_cast<size_t>(i)]] = 1;
  }
  std::vector<int64_t> of_tile(static_cast<size_t>(tiles));
  for (int64_t tile = 0; tile < tiles; ++tile) of_tile[static_cast<size_t>(tile)] = mask.n_kept(tile);
  for (const size_t index : rank(importance, 0, tiles * blocks)) {
    if (left == 0) break;
    int64_t& n = of_tile[index / static_cast<size_t>(blocks)];
    if (mask.kept[index] != 0 || n >= most) continue;
    mask.kept[index] = 1;
    ++n;
    --left;
  }
  return mask;
}

}  // namespace assay
