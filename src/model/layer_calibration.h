// One layer's matrices quantised with the statistics of their inputs. Internal to calibrate().
// Thread safety: layers are independent. Memory: the layer's matrices in f32 and one factor of its widest input.
#pragma once

#include <array>

#include "base/error.h"
#include "model/calibration.h"
#include "model/input_statistics.h"

namespace assay {

Result<CalibratedWeights> calibrate_layer(const Checkpoint& checkpoint, const ModelConfig& config,
                                          const Precision& precision, int layer,
                                          const std::array<InputStatistics, kMatrixInputs>& statistics);

}  // namespace assay
