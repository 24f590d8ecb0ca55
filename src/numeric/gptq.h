// GPTQ: integer codes chosen column after column so that later columns make up for the rounding of earlier
// ones on the calibration inputs (Frantar et al., "GPTQ", 2022; hessian_factor.h has the update). The scale and
// minimum of a group are fitted (group_fit.h) when its first column is reached, on weights that already make
// up for everything before.
//
// Pure; thread safe. Cost: rows * cols^2 / 2 multiply-adds, and about 64 * cols bytes of scratch.
// kInvalidArgument as quantise_groups(), and when the factor is of another size.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "numeric/hessian_factor.h"
#include "numeric/integer_groups.h"
#include "numeric/sparse_groups.h"

namespace assay {

// values: [rows, factor.n]. The factor's order must keep groups together: kByGroup with this group, or natural.
Result<IntegerGroups> quantise_gptq(std::span<const float> values, int64_t rows, Format format, int group,
                                    const HessianFactor& factor);

// The same with dropped blocks (int4): a dropped weight is an error like any other, for which the kept ones
// behind it make up (as in Frantar and Alistarh, "SparseGPT", 2023). The factor must be in natural order.
Result<SparseGroups> quantise_gptq_sparse(std::span<const float> values, const BlockMask& mask, int group,
                                          const HessianFactor& factor);

// Mean over the calibration inputs of the squared error of the outputs, over that of the outputs themselves:
// tr(E G E^T) / tr(W G W^T), E = approximation - values. 0 when both vanish. [rows, n]; gram [n, n] symmetric.
double relative_output_error(std::span<const float> values, std::span<const float> approximation, int64_t rows,
                             std::span<const float> gram);

}  // namespace assay
