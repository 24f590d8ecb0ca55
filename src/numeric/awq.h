// AWQ: scales per input channel that protect the weights which matter (Lin et al., "AWQ: Activation-aware
// Weight Quantization", 2023). A matrix W that reads x computes (W diag(s)) (x / s) just as well; with s large
// where |x| is, the important weights are rounded relatively finer. The division is folded into whatever
// produces x, so it costs nothing at run time.
//
//   s = (mean|x|)^alpha, normalised to sqrt(max s * min s) = 1, alpha from a grid over 0..1
//
// alpha is the one with the least expected squared error of the outputs, inputs taken as uncorrelated:
// sum over weights of (round(w s) / s - w)^2 * E[x^2].
//
// Pure; thread safe. Cost: one rounding of up to `kAwqRows` rows of each matrix per grid point.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "numeric/format.h"

namespace assay {

inline constexpr int kAwqGrid = 20;
inline constexpr int64_t kAwqRows = 256;

// One of the matrices that read the same input. values: [rows, n_inputs].
struct AwqMatrix {
  std::span<const float> values;
  int64_t rows = 0;
};

struct ChannelScales {
  std::vector<float> scales;  // s, [n_inputs]; all 1 when nothing is better
  double alpha = 0;
  double error_before = 0;  // relative to the outputs' expected square, with s = 1
  double error_after = 0;
};

// mean_magnitude: mean|x|, mean_square: E[x^2], [n_inputs] each. Inputs whose scales must be equal (a value head
// that several query heads read) are given equal magnitudes by the caller. kInvalidArgument: sizes that do not
// fit, NaN, infinity or negative statistics, and as quantise_groups().
Result<ChannelScales> search_channel_scales(std::span<const AwqMatrix> matrices,
                                            std::span<const float> mean_magnitude,
                                            std::span<const float> mean_square, Format format, int group);

// values[r][c] *= scales[c]. values: [rows, scales.size()].
void scale_columns(std::span<float> values, std::span<const float> scales);
// values[r][c] /= scales[r]. values: [scales.size(), cols].
void divide_rows(std::span<float> values, std::span<const float> scales);

}  // namespace assay
