// One weight tensor of a checkpoint, at one format, in the order the kernels read.
// as_shipped keeps what is stored: integer block types become integer groups without loss, float types their
// own format (F64 is rounded to f32). Any other format is reached by decoding to f32 and rounding: to a float
// format, to int4 groups with a minimum, or to symmetric int8 groups, by the method that the format names as long
// as that needs no calibration.
//
// Failure: kCorrupt for a wrong shape, NaN or infinity, naming the tensor; kUnsupported for types that are no
// weights and for values that the format cannot hold (f16 beyond 65504); kResourceExhausted. Thread safety:
// pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/packed_matrix.h"
#include "modelfile/checkpoint.h"
#include "numeric/precision.h"

namespace assay {

// What as_shipped means for this block type; other formats are returned as they are. Never as_shipped.
Result<WeightFormat> executed_format(const Tensor& tensor, const WeightFormat& wanted);

// The bytes that load_matrix() will keep, at most.
uint64_t packed_bytes(const WeightFormat& executed, int64_t n_outputs, int64_t n_inputs);

Result<PackedMatrix> load_matrix(const Tensor& tensor, const WeightFormat& executed, bool as_shipped);

// A matrix in f32, every value finite. [shape[0], shape[1]]
Result<std::vector<float>> decode_matrix(const Tensor& tensor);

// A norm or bias: finite f32 values. [n]
Result<std::vector<float>> load_vector(const Tensor& tensor, int64_t n);

}  // namespace assay
