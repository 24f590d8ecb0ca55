// Parses the bytes of a GGUF file (versions 2 and 3, little-endian). Pure: no I/O, nothing but the result is
// allocated, and that is bounded by the size of the input (counts are compared with the bytes that are left
// before anything is reserved, and all arrays together hold at most 2^24 elements).
// Checked: magic, version, every length, duplicate keys and tensor names, known types, 1 to 4 positive
// dimensions whose product fits, whole blocks per row, alignment, data inside the file and not overlapping.
// Ownership: metadata is copied; tensor data borrows `bytes`. Thread safe.
// Failure: kCorrupt, or kUnsupported for version 1, big-endian files and block types that assay does not
// decode. Source: the GGUF specification (docs/gguf.md of ggml).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "modelfile/checkpoint.h"

namespace assay {

struct GgufContents {
  uint32_t version = 0;
  uint64_t alignment = 0;
  std::vector<std::pair<std::string, MetadataValue>> metadata;  // in file order
  std::vector<Tensor> tensors;                                  // in file order
};

// `where` names the file in errors.
Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, std::string_view where);

}  // namespace assay
