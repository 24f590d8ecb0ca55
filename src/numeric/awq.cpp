#include "numeric/awq.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "numeric/group_fit.h"
#include "numeric/quantiser_input.h"

namespace assay {
namespace {

constexpr float kSmallestScale = 1e-4F;  // as in the paper's code

Result<void> check_input(std::span<const AwqMatrix> matrices, std::span<const float> mean_magnitude,
                         std::span<const float> mean_square, Format format, int group) {
  const auto n = static_cast<int64_t>(mean_magnitude.size());
  if (mean_square.size() != mean_magnitude.size()) {
    return fail(ErrorCode::kInvalidArgument, "awq", "expected {} mean squares, found {}", n, mean_square.size());
  }
  const auto sensible = [](float value) { return std::isfinite(value) && value >= 0; };
  if (!std::ranges::all_of(mean_magnitude, sensible) || !std::ranges::all_of(mean_square, sensible)) {
    return fail(ErrorCode::kInvalidArgument, "awq", "expected finite statistics of at least 0");
  }
  for (const AwqMatrix& matrix : matrices) {
    RETURN_IF_ERROR(numeric_internal::check_quantiser_input(matrix.values, matrix.rows, n, format, group));
  }
  return {};
}

std::vector<float> scales_of(std::span<const float> mean_magnitude, double alpha) {
  std::vector<float> scales(mean_magnitude.size(), 1.0F);
  if (alpha == 0 || scales.empty()) return scales;
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = std::max(std::pow(mean_magnitude[i], static_cast<float>(alpha)), kSmallestScale);
  }
  const auto [low, high] = std::ranges::minmax(scales);
  const float unit = std::sqrt(high) * std::sqrt(low);
  for (float& scale : scales) scale /= unit;
  return scales;
}

// One row, rounded at `scales`: its expected squared output error.
class RowError {
 public:
  RowError(std::span<const float> scales, std::span<const float> mean_square, Format format, int group)
      : scales_(scales), mean_square_(mean_square), grid_(grid_of(format)), group_(static_cast<size_t>(group)) {
    scaled_.resize(scales.size());
  }

  double of(const float* row) {
    for (size_t i = 0; i < scaled_.size(); ++i) scaled_[i] = row[i] * scales_[i];
    double error = 0;
    for (size_t first = 0; first < scaled_.size(); first += group_) {
      const auto part = std::span(scaled_).subspan(first, std::min(group_, scaled_.size() - first));
      const GroupFit fit = reach_extremes(part, grid_);
      for (size_t i = 0; i < part.size(); ++i) {
        const float back = value_of(nearest_code(part[i], fit, grid_), fit, grid_);
        const double difference = static_cast<double>((back - part[i]) / scales_[first + i]);
        error += difference * difference * static_cast<double>(mean_square_[first + i]);
      }
    }
    return error;
  }

 private:
  std::span<const float> scales_, mean_square_;
  GroupGrid grid_;
  size_t group_;
  std::vector<float> scaled_;
};

double total_error(std::span<const AwqMatrix> matrices, RowError row_error, size_t n) {
  double total = 0;
  for (const AwqMatrix& matrix : matrices) {
    const int64_t step = std::max<int64_t>(1, matrix.rows / kAwqRows);
    for (int64_t row = 0; row < matrix.rows; row += step) {
      total += row_error.of(matrix.values.data() + static_cast<size_t>(row) * n);
    }
  }
  return total;
}

double total_signal(std::span<const AwqMatrix> matrices, std::span<const float> mean_square) {
  double total = 0;
  for (const AwqMatrix& matrix : matrices) {
    const int64_t step = std::max<int64_t>(1, matrix.rows / kAwqRows);
    for (int64_t row = 0; row < matrix.rows; row += step) {
      const float* w = matrix.values.data() + static_cast<size_t>(row) * mean_square.size();
      for (size_t i = 0; i < mean_square.size(); ++i) {
        total += static_cast<double>(w[i]) * static_cast<double>(w[i]) * static_cast<double>(mean_square[i]);
      }
    }
  }
  return total;
}

}  // namespace

Result<ChannelScales> search_channel_scales(std::span<const AwqMatrix> matrices,
                                            std::span<const float> mean_magnitude,
                                            std::span<const float> mean_square, Format format, int group) {
  RETURN_IF_ERROR(check_input(matrices, mean_magnitude, mean_square, format, group));
  ChannelScales best;
  double least = 0;
  for (int step = 0; step < kAwqGrid; ++step) {
    const double alpha = static_cast<double>(step) / kAwqGrid;
    std::vector<float> scales = scales_of(mean_magnitude, alpha);
    const double error =
        total_error(matrices, RowError(scales, mean_square, format, group), mean_magnitude.size());
    if (step == 0) best.error_before = error;
    if (step > 0 && error >= least) continue;
    least = error;
    best.alpha = alpha;
    best.scales = std::move(scales);
  }
  best.error_after = least;
  if (const double signal = total_signal(matrices, mean_square); signal > 0) {
    best.error_before /= signal;
    best.error_after /= signal;
  }
  return best;
}

void scale_columns(std::span<float> values, std::span<const float> scales) {
  CHECK(scales.empty() ? values.empty() : values.size() % scales.size() == 0);
  for (size_t i = 0; i < values.size();) {
    for (size_t col = 0; col < scales.size(); ++col, ++i) values[i] *= scales[col];
  }
}

void divide_rows(std::span<float> values, std::span<const float> scales) {
  CHECK(scales.empty() ? values.empty() : values.size() % scales.size() == 0);
  const size_t cols = scales.empty() ? 0 : values.size() / scales.size();
  for (size_t row = 0; row < scales.size(); ++row) {
    for (size_t col = 0; col < cols; ++col) values[row * cols + col] /= scales[row];
  }
}

}  // namespace assay
