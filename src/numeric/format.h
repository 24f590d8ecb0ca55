// The number formats that assay computes in. File block types (q4_0, q6_k, ...) are in block_type.h.
// Pure functions; thread safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace assay {

enum class Format : uint8_t { kF32, kF16, kBF16, kFp8E4M3, kFp8E5M2, kInt8, kInt4, kCount };

inline constexpr int kFormatCount = static_cast<int>(Format::kCount);

// "f32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4".
std::string_view name(Format format);
// Accepts the names above; the error lists them.
Result<Format> parse_format(std::string_view text);
// Bits of one value, without scales: 32, 16, 16, 8, 8, 8, 4.
int bits(Format format);
constexpr bool is_integer(Format format) {
  return format == Format::kInt8 || format == Format::kInt4;
}

}  // namespace assay
