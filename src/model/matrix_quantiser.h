// One weight matrix in f32 to integer codes by the method that its format names, packed.
//
//   kNone, kFit   from the weights alone
//   kAwq          scale and minimum fitted with the inputs' second moments as weights (the channel scales of AWQ
//                 are folded in before, by whoever owns the matrices around: calibration.h)
//   kGptq         by the factor of the inputs' second moments
//   block50, global50   importance from the weights, and from the moments where the method has them
//
// Thread safety: pure. Failure: kInvalidArgument when a method lacks its statistics, and whatever the quantisers
// of numeric report; kResourceExhausted.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "kernels/packed_matrix.h"
#include "numeric/hessian_factor.h"
#include "numeric/precision.h"

namespace assay {

// What calibration saw of a matrix's inputs. Empty: nothing.
struct InputMoments {
  std::span<const float> mean_square;       // E[x^2], [n_inputs]
  const HessianFactor* factor = nullptr;    // in natural order for sparse formats, by group for dense ones
};

// values: [n_outputs, n_inputs], finite. `format`: int8 or int4.
Result<PackedMatrix> quantise_matrix(std::span<const float> values, int64_t n_outputs, int64_t n_inputs,
                                     const WeightFormat& format, const InputMoments& moments = {});

}  // namespace assay
