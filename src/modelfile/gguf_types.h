// The numbers by which GGUF files name metadata types and tensor types.
// Source: the GGUF specification (docs/gguf.md of ggml) and ggml's enum ggml_type.
// Pure functions and constants; thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "numeric/block_type.h"

namespace assay {

inline constexpr uint32_t kGgufDefaultAlignment = 32;
inline constexpr uint64_t kGgufMaximumAlignment = uint64_t{1} << 20;
inline constexpr uint32_t kGgufMaximumDimensions = 4;
inline constexpr uint64_t kGgufMaximumTensorName = 64;  // bytes
inline constexpr uint64_t kGgufMaximumKey = 65535;      // bytes

enum class GgufValueType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
  kCount
};

// Bytes of one value in the file; for strings and arrays, the least they take.
uint64_t minimum_bytes(GgufValueType type);

// The tensor types that assay decodes.
std::optional<BlockType> block_type_from_gguf(uint32_t code);
// Types that ggml defines and assay does not decode ("IQ2_XXS"); empty for every other number.
std::string_view undecoded_gguf_type_name(uint32_t code);
// Inverse of block_type_from_gguf; fp8 has no number in GGUF.
std::optional<uint32_t> gguf_code(BlockType type);

}  // namespace assay
