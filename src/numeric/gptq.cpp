#include "numeric/gptq.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "numeric/group_fit.h"
#include "numeric/quantiser_input.h"

namespace assay {
namespace {

constexpr int kRows = 16;  // rows taken together: lanes of every loop, and a tile of a block mask

// Rows [first_row, first_row + n_rows) of a matrix, its columns by position.
class TileCompensation {
 public:
  TileCompensation(const HessianFactor& factor, IntegerGroups& groups)
      : factor_(factor),
        groups_(groups),
        grid_(grid_of(groups.format)),
        n_(static_cast<size_t>(factor.n)),
        weights_(n_ * kRows),
        errors_(n_ * kRows),
        pulls_(n_ * kRows) {}

  // group_of: by position, the group that a column belongs to; -1: dropped. A group's columns may have dropped
  // ones between them, but none of another group.
  void run(std::span<const float> values, int64_t first_row, std::span<const int32_t> group_of) {
    first_row_ = first_row;
    n_rows_ = std::min<int64_t>(kRows, groups_.rows - first_row);
    load(values);
    size_t position = 0;
    while (position < n_) {
      if (group_of[position] < 0) {
        drop(position++);
        continue;
      }
      size_t end = position + 1;
      for (size_t i = end; i < n_ && (group_of[i] < 0 || group_of[i] == group_of[position]); ++i) {
        if (group_of[i] >= 0) end = i + 1;
      }
      run_group(position, end, group_of);
      position = end;
    }
  }

 private:
  float* at(std::vector<float>& values, size_t position) { return values.data() + position * kRows; }

  void load(std::span<const float> values) {
    for (size_t k = 0; k < n_; ++k) {
      for (int64_t lane = 0; lane < kRows; ++lane) {
        const int64_t index = (first_row_ + lane) * factor_.n + factor_.order[k];
        at(weights_, k)[lane] = lane < n_rows_ ? values[static_cast<size_t>(index)] : 0;
      }
    }
  }

  void drop(size_t k) {
    for (int lane = 0; lane < kRows; ++lane) at(errors_, k)[lane] = -at(weights_, k)[lane];
  }

  // sum += errors of positions [first, last) times their ratios to position k.
  void pull(size_t k, size_t first, size_t last, float* sum) const {
    const float* ratios = factor_.ratios.data() + k * n_;
    float lanes[kRows];
    std::copy_n(sum, kRows, lanes);
    for (size_t i = first; i < last; ++i) {
      const float ratio = ratios[i];
      const float* error = errors_.data() + i * kRows;
      for (int lane = 0; lane < kRows; ++lane) lanes[lane] += error[lane] * ratio;
    }
    std::copy_n(lanes, kRows, sum);
  }

  void run_group(size_t first, size_t end, std::span<const int32_t> group_of) {
    for (size_t k = first; k < end; ++k) {
      std::fill_n(at(pulls_, k), kRows, 0.0F);
      pull(k, 0, first, at(pulls_, k));
    }
    // What the group's weights would be if none of them were rounded.
    for (size_t k = first; k < end; ++k) {
      if (group_of[k] < 0) {
        drop(k);
        continue;
      }
      float sum[kRows];
      std::copy_n(at(pulls_, k), kRows, sum);
      pull(k, first, k, sum);
      for (int lane = 0; lane < kRows; ++lane) at(errors_, k)[lane] = -sum[lane];
    }
    fit_lanes(first, end, group_of);
    for (size_t k = first; k < end; ++k) {
      if (group_of[k] < 0) continue;  // its error stands
      pull(k, first, k, at(pulls_, k));
      round(k);
    }
  }

  void fit_lanes(size_t first, size_t end, std::span<const int32_t> group_of) {
    const int64_t group = group_of[first];
    for (int64_t lane = 0; lane < n_rows_; ++lane) {
      part_.clear();
      importance_.clear();
      for (size_t k = first; k < end; ++k) {
        if (group_of[k] < 0) continue;
        part_.push_back(at(weights_, k)[lane] + at(errors_, k)[lane]);
        importance_.push_back(factor_.pivots[k]);
      }
      fits_[lane] = fit_group(part_, importance_, grid_);
      const auto index = static_cast<size_t>((first_row_ + lane) * groups_.groups_per_row() + group);
      groups_.scales[index] = fits_[lane].scale;
      groups_.minimums[index] = fits_[lane].minimum;
    }
  }

  void round(size_t k) {
    for (int64_t lane = 0; lane < kRows; ++lane) {
      if (lane >= n_rows_) {
        at(errors_, k)[lane] = 0;
        continue;
      }
      const float weight = at(weights_, k)[lane];
      const uint8_t code = nearest_code(weight - at(pulls_, k)[lane], fits_[lane], grid_);
      groups_.codes[static_cast<size_t>((first_row_ + lane) * factor_.n + factor_.order[k])] = code;
      at(errors_, k)[lane] = value_of(code, fits_[lane], grid_) - weight;
    }
  }

  const HessianFactor& factor_;
  IntegerGroups& groups_;
  GroupGrid grid_;
  size_t n_;
  int64_t first_row_ = 0, n_rows_ = 0;
  std::vector<float> weights_, errors_, pulls_;  // [n, kRows] by position
  GroupFit fits_[kRows];
  std::vector<float> part_, importance_;
};

Result<void> check_factor(const HessianFactor& factor, int64_t cols) {
  if (factor.n == cols) return {};
  return fail(ErrorCode::kInvalidArgument, "gptq", "the factor is of {} inputs, the matrix has {}", factor.n,
              cols);
}

// True when no group of `group_of` is met again after another.
bool keeps_groups_together(std::span<const int32_t> group_of) {
  std::vector<bool> seen;
  int32_t last = -1;
  for (const int32_t group : group_of) {
    if (group < 0 || group == last) continue;
    if (static_cast<size_t>(group) >= seen.size()) seen.resize(static_cast<size_t>(group) + 1);
    if (seen[static_cast<size_t>(group)]) return false;
    seen[static_cast<size_t>(group)] = true;
    last = group;
  }
  return true;
}

}  // namespace

Result<IntegerGroups> quantise_gptq(std::span<const float> values, int64_t rows, Format format, int group,
                                    const HessianFactor& factor) {
  RETURN_IF_ERROR(numeric_internal::check_quantiser_input(values, rows, factor.n, format, group));
  std::vector<int32_t> group_of(factor.order.size());
  for (size_t k = 0; k < group_of.size(); ++k) group_of[k] = factor.order[k] / group;
  if (!keeps_groups_together(group_of)) {
    return fail(ErrorCode::kInvalidArgument, "gptq", "the factor's order does not keep groups of {} together",
                group);
  }
  IntegerGroups groups = numeric_internal::allocate_groups(format, group, rows, factor.n);
  groups.zero_point = grid_of(format).zero_point;
  TileCompensation tile(factor, groups);
  for (int64_t row = 0; row < rows; row += kRows) tile.run(values, row, group_of);
  return groups;
}

Result<SparseGroups> quantise_gptq_sparse(std::span<const float> values, const BlockMask& mask, int group,
                                          const HessianFactor& factor) {
  RETURN_IF_ERROR(
      numeric_internal::check_quantiser_input(values, mask.rows, mask.cols, Format::kInt4, group));
  RETURN_IF_ERROR(check_factor(factor, mask.cols));
  if (group % kBlockCols != 0 || !std::ranges::is_sorted(factor.order)) {
    return fail(ErrorCode::kInvalidArgument, "gptq",
                "sparse matrices need a group of a multiple of 32 and columns in natural order");
  }
  static_assert(kRows == kBlockRows);
  SparseGroups sparse{mask,
                      numeric_internal::allocate_groups(Format::kInt4, group, mask.rows, mask.cols)};
  TileCompensation tile(factor, sparse.groups);
  std::vector<int32_t> group_of(static_cast<size_t>(mask.cols));
  for (int64_t row = 0; row < mask.rows; row += kRows) {
    int64_t rank = -1;
    for (int64_t col = 0; col < mask.cols; ++col) {
      const bool kept = mask.keeps(row / kBlockRows, col / kBlockCols);
      if (kept && col % kBlockCols == 0) ++rank;
      group_of[static_cast<size_t>(col)] = kept ? static_cast<int32_t>(rank * kBlockCols / group) : -1;
    }
    tile.run(values, row, group_of);
  }
  return sparse;
}

double relative_output_error(std::span<const float> values, std::span<const float> approximation, int64_t rows,
                             std::span<const float> gram) {
  CHECK_OP(values.size(), ==, approximation.size());
  const auto n = rows == 0 ? size_t{0} : values.size() / static_cast<size_t>(rows);
  CHECK_OP(gram.size(), ==, n * n);
  const auto quadratic = [&](auto&& value) {
    double total = 0;
    for (size_t i = 0; i < n; ++i) {
      double product = 0;
      for (size_t j = 0; j < n; ++j) product += static_cast<double>(gram[i * n + j]) * value(j);
      total += product * value(i);
    }
    return total;
  };
  double error = 0, signal = 0;
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    const float* w = values.data() + row * n;
    const float* a = approximation.data() + row * n;
    error += quadratic([&](size_t j) { return static_cast<double>(a[j]) - static_cast<double>(w[j]); });
    signal += quadratic([&](size_t j) { return static_cast<double>(w[j]); });
  }
  return error == 0 ? 0 : error / signal;
}

}  // namespace assay
