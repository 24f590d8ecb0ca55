#include "kernels/activations.h"

#include "base/check.h"
#include "base/units.h"
#include "kernels/kernel_table.h"
#include "kernels/packed_matrix.h"

namespace assay {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 40;
constexpr int64_t kHalfGroup = kActivationGroup / 2;

}  // namespace

ActivationView ActivationView::rows(int64_t first, int64_t count) const {
  CHECK(first >= 0 && count >= 0 && first + count <= n_rows);
  ActivationView view = *this;
  view.n_rows = count;
  view.values = static_cast<const std::byte*>(values) + first * stride * bits(format) / 8;
  if (format == Format::kInt8) {
    view.scales = scales + first * stride / kActivationGroup;
    view.sums = sums + first * stride / kHalfGroup;
  }
  return view;
}

Result<ActivationBuffer> ActivationBuffer::create(int64_t max_rows, int64_t max_cols) {
  if (max_rows < 0 || max_cols < 0 || max_cols > kMostValues ||
      (max_cols > 0 && max_rows > kMostValues / max_cols)) {
    return fail(ErrorCode::kInvalidArgument, "activation buffer",
                "expected a shape of at most 2^40 values, found {} x {}", max_rows, max_cols);
  }
  ActivationBuffer buffer;
  buffer.max_rows_ = max_rows;
  buffer.max_stride_ = round_up(max_cols, kColumnUnit);
  const auto n = static_cast<size_t>(max_rows * buffer.max_stride_);
  ASSIGN_OR_RETURN(buffer.values_, AlignedBuffer::allocate(n * sizeof(float)));
  ASSIGN_OR_RETURN(buffer.scales_, AlignedBuffer::allocate(n / kActivationGroup * sizeof(float)));
  ASSIGN_OR_RETURN(buffer.sums_, AlignedBuffer::allocate(n / kHalfGroup * sizeof(int32_t)));
  return buffer;
}

ActivationBuffer::Mutable ActivationBuffer::shape_as(Format format, int64_t n_rows, int64_t n_cols) {
  CHECK(activation_index(format) >= 0);
  CHECK(n_rows >= 0 && n_cols >= 0);
  CHECK_OP(n_rows, <=, max_rows_);
  const int64_t stride = round_up(n_cols, kColumnUnit);
  CHECK_OP(stride, <=, max_stride_);
  view_ = {.format = format, .n_rows = n_rows, .n_cols = n_cols, .stride = stride, .values = values_.data()};
  if (format == Format::kInt8) {
    view_.scales = scales_.as<float>();
    view_.sums = sums_.as<int32_t>();
  }
  return {.format = format,
          .n_rows = n_rows,
          .n_cols = n_cols,
          .stride = stride,
          .values = values_.data(),
          .scales = scales_.as<float>(),
          .sums = sums_.as<int32_t>()};
}

}  // namespace assay
