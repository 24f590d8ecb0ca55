// Activations of a batch in the format a matmul reads: f32, bf16, or int8 with one scale per token and group
// of 32. Quantised once per token and shared by every matrix that reads them (Q, K, V; gate, up). int8: value
// = scale * code, code in [-127, 127], scale = max|x| / 127; sums[r][h] is the sum of 16 codes (half a
// group), needed for weights with minimums or a zero point. Columns are padded with zeros to a multiple of
// kColumnUnit.
#pragma once

#include <cstdint>

#include "base/aligned.h"
#include "base/error.h"
#include "numeric/format.h"

namespace assay {

inline constexpr int kActivationGroup = 32;

struct ActivationView {
  Format format = Format::kF32;
  int64_t n_rows = 0;
  int64_t n_cols = 0;             // as the model has them
  int64_t stride = 0;             // padded columns, in values
  const void* values = nullptr;   // [n_rows, stride]
  const float* scales = nullptr;  // [n_rows, stride / 32]; int8 only
  const int32_t* sums = nullptr;  // [n_rows, stride / 16]; int8 only

  // Rows [first, first + count) of the same activations.
  ActivationView rows(int64_t first, int64_t count) const;
};

// Storage for up to `max_rows` x `max_cols`, allocated once; prepared again and again without allocating.
class ActivationBuffer {
 public:
  // kInvalidArgument for a negative or overflowing shape, kResourceExhausted when the memory cannot be had.
  static Result<ActivationBuffer> create(int64_t max_rows, int64_t max_cols);

  // The storage laid out for this shape and format (f32, bf16, int8); contents are undefined until a kernel
  // fills them. The shape must fit; CHECKed.
  struct Mutable {
    Format format;
    int64_t n_rows, n_cols, stride;
    void* values;
    float* scales;
    int32_t* sums;
  };
  Mutable shape_as(Format format, int64_t n_rows, int64_t n_cols);
  ActivationView view() const { return view_; }
  uint64_t bytes() const { return values_.size() + scales_.size() + sums_.size(); }

 private:
  AlignedBuffer values_, scales_, sums_;
  int64_t max_rows_ = 0, max_stride_ = 0;
  ActivationView view_;
};

}  // namespace assay
