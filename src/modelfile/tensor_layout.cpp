#include "modelfile/tensor_layout.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "modelfile/show_name.h"

namespace assay::modelfile_internal {

Result<uint64_t> checked_bytes(const Tensor& tensor, std::string_view where) {
  const std::string name = show_name(tensor.name);
  uint64_t n_values = 1;
  for (const int64_t dimension : tensor.shape) {
    if (dimension <= 0)
      return fail(ErrorCode::kCorrupt, where, "tensor {}: dimension {} is not positive", name, dimension);
    if (__builtin_mul_overflow(n_values, static_cast<uint64_t>(dimension), &n_values) ||
        n_values > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return fail(ErrorCode::kCorrupt, where, "tensor {}: the product of its dimensions exceeds 2^63 - 1",
                  name);
    }
  }
  const int block = layout(tensor.type).values;
  const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % block != 0) {
    return fail(ErrorCode::kCorrupt, where, "tensor {}: rows of {} values are not whole {} blocks of {}",
                name, row, assay::name(tensor.type), block);
  }
  auto bytes = stored_bytes(tensor.type, n_values);
  if (!bytes) {
    return fail(ErrorCode::kCorrupt, where, "tensor {}: {} values of {} exceed 2^64 bytes", name, n_values,
                assay::name(tensor.type));
  }
  return *bytes;
}

namespace {

struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
  const Tensor* tensor = nullptr;
};

Result<Extent> place_one(std::span<const std::byte> bytes, std::string_view where,
                         const PlacedTensor& placed) {
  ASSIGN_OR_RETURN(const uint64_t size, checked_bytes(*placed.tensor, where));
  Extent extent{.tensor = placed.tensor};
  if (__builtin_add_overflow(placed.section, placed.offset, &extent.begin) ||
      __builtin_add_overflow(extent.begin, size, &extent.end)) {
    return fail(ErrorCode::kCorrupt, where, "tensor {}: offset {} plus {} bytes exceeds 2^64",
                show_name(placed.tensor->name), placed.offset, size);
  }
  if (extent.end > bytes.size()) {
    return fail(ErrorCode::kCorrupt, where,
                "truncated: tensor {} occupies bytes {} to {}, the file ends after {}",
                show_name(placed.tensor->name), extent.begin, extent.end, bytes.size());
  }
  placed.tensor->data = bytes.subspan(extent.begin, size);
  return extent;
}

}  // namespace

Result<void> place_in_file(std::span<const std::byte> bytes, std::string_view where,
                           std::span<const PlacedTensor> tensors) {
  std::vector<Extent> extents;
  extents.reserve(tensors.size());
  for (const PlacedTensor& placed : tensors) {
    ASSIGN_OR_RETURN(const Extent extent, place_one(bytes, where, placed));
    extents.push_back(extent);
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) {
      return fail(ErrorCode::kCorrupt, where, "tensors {} and {} overlap at byte {}",
                  show_name(extents[i - 1].tensor->name), show_name(extents[i].tensor->name),
                  extents[i].begin);
    }
  }
  return {};
}

}  // namespace assay::modelfile_internal
