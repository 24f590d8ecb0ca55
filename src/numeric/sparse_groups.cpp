#include "numeric/sparse_groups.h"

#include <algorithm>

#include "base/check.h"
#include "numeric/group_fit.h"
#include "numeric/quantiser_input.h"

namespace assay {

Result<SparseGroups> quantise_sparse(std::span<const float> values, const BlockMask& mask, int group, bool fit,
                                     std::span<const float> column_moments) {
  RETURN_IF_ERROR(
      numeric_internal::check_quantiser_input(values, mask.rows, mask.cols, Format::kInt4, group));
  if (group % kBlockCols != 0) {
    return fail(ErrorCode::kInvalidArgument, "sparse groups", "expected a group of a multiple of 32, found {}",
                group);
  }
  CHECK(mask.kept.size() == static_cast<size_t>(mask.tiles() * mask.blocks()));
  CHECK(column_moments.empty() || static_cast<int64_t>(column_moments.size()) == mask.cols);
  SparseGroups sparse{mask, numeric_internal::allocate_groups(Format::kInt4, group, mask.rows, mask.cols)};
  IntegerGroups& groups = sparse.groups;
  const GroupGrid grid = grid_of(Format::kInt4);
  std::vector<int64_t> columns;  // kept by the tile, ascending
  std::vector<float> part, weights;
  for (int64_t row = 0; row < mask.rows; ++row) {
    if (row % kBlockRows == 0) {
      columns.clear();
      for (int64_t col = 0; col < mask.cols; ++col) {
        if (mask.keeps(row / kBlockRows, col / kBlockCols)) columns.push_back(col);
      }
    }
    const float* w = values.data() + row * mask.cols;
    for (size_t first = 0; first < columns.size(); first += static_cast<size_t>(group)) {
      const auto members =
          std::span(columns).subspan(first, std::min(static_cast<size_t>(group), columns.size() - first));
      part.clear();
      weights.clear();
      for (const int64_t col : members) {
        part.push_back(w[col]);
        if (!column_moments.empty()) weights.push_back(column_moments[static_cast<size_t>(col)]);
      }
      const GroupFit chosen = fit ? fit_group(part, weights, grid) : reach_extremes(part, grid);
      const auto at = static_cast<size_t>(row * groups.groups_per_row()) + first / static_cast<size_t>(group);
      groups.scales[at] = chosen.scale;
      groups.minimums[at] = chosen.minimum;
      for (const int64_t col : members) {
        groups.codes[static_cast<size_t>(row * mask.cols + col)] = nearest_code(w[col], chosen, grid);
      }
    }
  }
  return sparse;
}

void dequantise_row(const SparseGroups& sparse, int64_t row, std::span<float> dst) {
  const BlockMask& mask = sparse.mask;
  const IntegerGroups& groups = sparse.groups;
  CHECK(row >= 0 && row < mask.rows);
  CHECK_OP(static_cast<int64_t>(dst.size()), ==, mask.cols);
  int64_t rank = 0;
  for (int64_t block = 0; block < mask.blocks(); ++block) {
    const int64_t first = block * kBlockCols, last = std::min(first + kBlockCols, mask.cols);
    if (!mask.keeps(row / kBlockRows, block)) {
      std::fill(dst.begin() + first, dst.begin() + last, 0.0F);
      continue;
    }
    const auto at = static_cast<size_t>(row * groups.groups_per_row() + rank * kBlockCols / groups.group);
    for (int64_t col = first; col < last; ++col) {
      const auto code = static_cast<float>(groups.codes[static_cast<size_t>(row * mask.cols + col)]);
      dst[static_cast<size_t>(col)] = groups.scales[at] * code + groups.minimums[at];
    }
    ++rank;
  }
}

}  // namespace assay
