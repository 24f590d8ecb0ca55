// Writes a GGUF v3 file: metadata and tensor descriptions first, then the tensor data in pieces of any size,
// so that no more than one piece is in memory. The file appears under its name only when finish() succeeds.
//
// Integers take the narrowest of u32/u64 (or i32/i64), numbers are written as f32 as every reader expects
// them (f64 outside its range), the SentencePiece character map as u8. The alignment is general.alignment of
// the metadata, or 32. Failure: kInvalidArgument for what parse_gguf() would refuse (duplicates, lengths,
// shapes, types GGUF has no number for) and for data that is too short or too long; kResourceExhausted for a
// full disk; kIo. Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "modelfile/checkpoint.h"

namespace assay {

struct GgufDocument {
  std::vector<std::pair<std::string, MetadataValue>> metadata;
  std::vector<Tensor> tensors;  // name, type and shape count; data is read by write_gguf() alone
};

// The header with its padding: everything before the first tensor's data.
Result<std::string> encode_gguf_header(const GgufDocument& document);

class GgufWriter {
 public:
  static Result<GgufWriter> create(const std::filesystem::path& path, const GgufDocument& document);

  // Data of the tensors in the order of the document; pieces may end anywhere.
  Result<void> append(std::span<const std::byte> bytes);
  // kInvalidArgument when data is missing.
  Result<void> finish();

 private:
  Result<void> pad();

  AtomicFile file_;
  std::filesystem::path path_;
  std::vector<uint64_t> tensor_bytes_;
  uint64_t alignment_ = 32;
  size_t tensor_ = 0;         // being written
  uint64_t tensor_done_ = 0;  // bytes of it written
};

// All at once: tensors with their data.
Result<void> write_gguf(const std::filesystem::path& path, const GgufDocument& document);

}  // namespace assay
