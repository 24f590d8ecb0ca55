#include "numeric/error_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "numeric/convert.h"

namespace assay {
namespace {

// Sums that turn into statistics at the end, so that a tensor can be visited in pieces.
struct Sums {
  uint64_t count = 0;
  uint64_t nan = 0;
  double max_absolute = 0;
  double squared_error = 0;
  double squared_value = 0;

  void add(std::span<const float> values, std::span<const float> approximation) {
    for (size_t i = 0; i < values.size(); ++i) {
      nan += std::isnan(values[i]);
      if (!std::isfinite(values[i]) || !std::isfinite(approximation[i])) continue;
      const double value = values[i];
      const double error = static_cast<double>(approximation[i]) - value;
      ++count;
      max_absolute = std::max(max_absolute, std::fabs(error));
      squared_error += error * error;
      squared_value += value * value;
    }
  }

  ErrorStatistics statistics() const {
    ErrorStatistics result;
    result.count = count;
    result.nan = nan;
    result.max_absolute = max_absolute;
    result.sqnr_db = std::numeric_limits<double>::infinity();
    if (squared_error == 0) return result;
    result.rms = std::sqrt(squared_error / static_cast<double>(count));
    result.relative_rms = std::sqrt(squared_error / squared_value);
    result.sqnr_db = -20 * std::log10(result.relative_rms);
    return result;
  }
};

// In pieces, so that the cost in memory does not depend on the tensor.
ErrorStatistics float_round_trip(std::span<const float> values, Format format) {
  constexpr size_t kPiece = 4096;
  const auto value_bytes = static_cast<size_t>(bits(format)) / 8;
  std::vector<std::byte> stored(kPiece * value_bytes);
  std::vector<float> back(kPiece);
  Sums sums;
  uint64_t saturated = 0;
  while (!values.empty()) {
    const auto piece = values.first(std::min(kPiece, values.size()));
    const auto bytes = std::span(stored).first(piece.size() * value_bytes);
    const auto floats = std::span(back).first(piece.size());
    saturated += encode_floats(format, piece, bytes).saturated;
    decode_floats(format, bytes, floats);
    sums.add(piece, floats);
    values = values.subspan(piece.size());
  }
  ErrorStatistics result = sums.statistics();
  result.saturated = saturated;
  return result;
}

}  // namespace

ErrorStatistics compare(std::span<const float> values, std::span<const float> approximation) {
  CHECK_OP(values.size(), ==, approximation.size());
  Sums sums;
  sums.add(values, approximation);
  return sums.statistics();
}

Result<ErrorStatistics> round_trip_error(std::span<const float> values, int64_t rows, int64_t cols,
                                         const WeightFormat& weights, GroupScheme scheme) {
  if (weights.as_shipped) {
    return fail(ErrorCode::kInvalidArgument, "round trip", "expected a format, found the checkpoint's own");
  }
  uint64_t count = 0;
  if (rows < 0 || cols < 0 ||
      __builtin_mul_overflow(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), &count) ||
      count != values.size()) {
    return fail(ErrorCode::kInvalidArgument, "round trip", "[{}, {}] does not fit the {} values given", rows,
                cols, values.size());
  }
  if (!is_integer(weights.format)) return float_round_trip(values, weights.format);
  ASSIGN_OR_RETURN(const IntegerGroups groups,
                   quantise_groups(values, rows, cols, weights.format, weights.group, scheme));
  std::vector<float> back(static_cast<size_t>(cols));
  Sums sums;
  for (int64_t row = 0; row < rows; ++row) {
    dequantise_row(groups, row, back);
    sums.add(values.subspan(static_cast<size_t>(row * cols), back.size()), back);
  }
  return sums.statistics();
}

}  // namespace assay
