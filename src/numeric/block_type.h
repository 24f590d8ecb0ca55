// How checkpoints store tensors: plain element types and GGML block types.
// Source of the block layouts: the GGUF specification and ggml's reference de-quantisers.
// Pure functions; thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"

namespace assay {

enum class BlockType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kFp8E4M3,
  kFp8E5M2,
  kI8,
  kI16,
  kI32,
  kI64,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kCount
};

std::string_view name(BlockType type);  // "F32", "Q4_1", "Q6_K", ...

struct BlockLayout {
  int values;  // values per block: 1, 32 or 256
  int bytes;   // bytes per block
};
BlockLayout layout(BlockType type);

// Bytes of `n_values` values. Error when n_values is not a multiple of the block or the product overflows.
Result<uint64_t> stored_bytes(BlockType type, uint64_t n_values);

// Decodes whole blocks to f32. src.size() must be stored_bytes(type, dst.size()); CHECKed.
void decode(BlockType type, std::span<const std::byte> src, std::span<float> dst);

}  // namespace assay
