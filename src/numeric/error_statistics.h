// What a tensor loses in a format: the differences between values and their round trip through it.
// All sums are in double. Thread safety: pure. Cost: one conversion and one pass.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "numeric/integer_groups.h"
#include "numeric/precision.h"

namespace assay {

struct ErrorStatistics {
  uint64_t count = 0;       // values compared: those that are finite on both sides
  uint64_t saturated = 0;   // values clamped or turned into infinity (convert.h)
  uint64_t nan = 0;         // NaN among the values
  double max_absolute = 0;  // largest |difference|
  double rms = 0;           // root of the mean squared difference
  double relative_rms = 0;  // rms / rms of the values; 0 when the differences are all zero
  double sqnr_db = 0;       // -20 log10(relative_rms), infinite when nothing is lost
};

// Compares values pairwise. CHECKs equal sizes. `saturated` stays 0: it cannot be seen from here.
ErrorStatistics compare(std::span<const float> values, std::span<const float> approximation);

// Round trip of values [rows, cols] through a weight format; integers in groups along a row by `scheme`.
// Errors are those of quantise_groups; as_shipped is kInvalidArgument, as it names no format.
Result<ErrorStatistics> round_trip_error(std::span<const float> values, int64_t rows, int64_t cols,
                                         const WeightFormat& weights,
                                         GroupScheme scheme = GroupScheme::kSymmetric);

}  // namespace assay
