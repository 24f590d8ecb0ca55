// How the keys and values of one layer of one sequence lie in pages. kvcache hands these out; kernels write
// and read through them.
//
// A block (page) holds `page_tokens` positions of every layer. Inside a block, one layer's keys are
//   codes  [n_kv_heads][page_tokens][head_dim]   in key_format, at key_offset
//   scales [n_kv_heads][page_tokens] f32         int8 only, right after the codes
// and its values likewise at value_offset. Position p lies in block blocks[p / page_tokens], slot p %
// page_tokens. int8 rows are symmetric: value = scale * code, scale = max|x| / 127.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "numeric/format.h"

namespace assay {

struct KvView {
  std::byte* base = nullptr;
  const int32_t* blocks = nullptr;  // [ceil(n_positions / page_tokens)]
  size_t block_bytes = 0;
  size_t key_offset = 0;
  size_t value_offset = 0;
  Format key_format = Format::kF32;  // f32, f16, bf16, int8
  Format value_format = Format::kF32;
  int page_tokens = 16;
  int n_kv_heads = 0;
  int head_dim = 0;
};

// Bytes of one layer's keys (or values) in one block, scales included, rounded up to 64.
constexpr size_t kv_plane_bytes(Format format, int n_kv_heads, int page_tokens, int head_dim) {
  const int64_t rows = static_cast<int64_t>(n_kv_heads) * page_tokens;
  const int64_t value_bits = format == Format::kF32                              ? 32
                             : format == Format::kF16 || format == Format::kBF16 ? 16
                                                                                 : 8;
  const int64_t scale_bytes = format == Format::kInt8 ? rows * 4 : 0;
  return static_cast<size_t>(round_up(rows * head_dim * value_bits / 8 + scale_bytes, 64));
}

}  // namespace assay
