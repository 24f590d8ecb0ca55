// Parses the bytes of one safetensors file. Pure: no I/O; memory is bounded by the header (at most 100 MB).
// Checked: header length, JSON (depth, names twice), types, shape x type = bytes, offsets in bounds, and that
// the tensors cover the data without holes or overlaps, as the format demands. Tensors that assay cannot hold
// (types outside f32 f16 bf16 f64 fp8 i8..i64, more than 4 dimensions, no values) are left out with a
// warning; a scalar becomes one value. Ownership: tensor data borrows `bytes`. Thread safe. Failure:
// kCorrupt, kUnsupported (unknown type). Source: the safetensors format description
// (github.com/huggingface/safetensors).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "modelfile/checkpoint.h"

namespace assay {

inline constexpr uint64_t kSafetensorsMaximumHeader = 100'000'000;

struct SafetensorsContents {
  std::vector<Tensor> tensors;  // names as in the file, in the order of their data
  std::vector<std::pair<std::string, std::string>> metadata;  // "__metadata__"
  std::vector<std::string> left_out;                          // names of tensors that are not in `tensors`
  std::vector<std::string> warnings;                          // and why
};

// `where` names the file in errors.
Result<SafetensorsContents> parse_safetensors(std::span<const std::byte> bytes, std::string_view where);

}  // namespace assay
