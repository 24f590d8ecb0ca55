// Sizes of tensors from untrusted shapes, and their place in a file. Internal to modelfile; pure; thread
// safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "modelfile/checkpoint.h"

namespace assay::modelfile_internal {

// Bytes of the tensor's type and shape: positive dimensions, product without overflow, whole blocks per row.
Result<uint64_t> checked_bytes(const Tensor& tensor, std::string_view where);

struct PlacedTensor {
  Tensor* tensor = nullptr;
  uint64_t section = 0;  // start of the data section in the file
  uint64_t offset = 0;   // inside the section
};

// Points every tensor's data into `bytes`; refuses data past the end and data that overlaps.
Result<void> place_in_file(std::span<const std::byte> bytes, std::string_view where,
                           std::span<const PlacedTensor> tensors);

}  // namespace assay::modelfile_internal
