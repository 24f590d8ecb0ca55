// How the keys and values of one layer of one sequence lie in pages. kvcache hands these out; kernels write
// and read through them.
//
// A block (page) holds `page_tokens` positions of every layer; position p lies in block blocks[p /
// page_tokens]. Inside a block, one layer's keys lie at key_offset and its values at value_offset, each as
//   tiles [n_kv_heads][page_tokens / 16], a tile holding 16 positions of one head: codes, then scales.
// Codes are cells of 32 bits, each with `unit` = 32 / bits values that a product sums one after the other, so
// that 16 cells fill a vector register and every format is decoded there:
//   keys    [padded_dim / unit][16 positions][unit]     unit consecutive dimensions of one position
//   values  [16 / unit][padded_dim][unit]               unit consecutive positions of one dimension
// padded_dim is head_dim rounded up to 16; codes beyond head_dim are those of zero. An int4 cell holds value j
// < 4 in the low and value 4 + j in the high half of byte j; other formats lie in ascending bytes. Scales:
//   int8   [16 positions] f32; symmetric: value = scale * code, scale = max|x| / 127 over the head. Keys are
//          stored as code + 128 (what dot-product instructions want beside signed queries), values as they are.
//   int4   [padded_dim / kKvGroup rounded up][2][16 positions] f16: value = scale * code + minimum, by groups
//          of kKvGroup dimensions, scale = (max - min) / 15; a group that f16 cannot scale becomes NaN.
//   others none: the value is the code. fp8 saturates and keeps NaN.
// A head with NaN or infinity under a scale gets scale NaN and codes 0.
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
  Format key_format = Format::kF32;
  Format value_format = Format::kF32;
  int page_tokens = 16;  // a multiple of kKvTile
  int n_kv_heads = 0;
  int head_dim = 0;
};

inline constexpr int kKvTile = 16;   // positions of a tile
inline constexpr int kKvGroup = 64;  // dimensions of an int4 group

// Bits of one value in a page.
constexpr int kv_bits(Format format) {
  switch (format) {
    case Format::kF32:
      return 32;
    case Format::kF16:
    case Format::kBF16:
      return 16;
    case Format::kFp8E4M3:
    case Format::kFp8E5M2:
    case Format::kInt8:
      return 8;
    case Format::kInt4:
      return 4;
    case Format::kCount:
      break;
  }
  return 0;
}
// Values of one cell.
constexpr int kv_unit(Format format) {
  return 32 / kv_bits(format);
}
constexpr int kv_padded_dim(int head_dim) {
  return (head_dim + 15) / 16 * 16;
}
constexpr int kv_groups(int head_dim) {
  return (head_dim + kKvGroup - 1) / kKvGroup;
}
// Bytes of a tile's codes, and of the whole tile; multiples of 64.
constexpr size_t kv_code_bytes(Format format, int head_dim) {
  return static_cast<size_t>(kv_padded_dim(head_dim)) * kKvTile * static_cast<size_t>(kv_bits(format)) / 8;
}
constexpr size_t kv_tile_bytes(Format format, int head_dim) {
  const int scale_rows = format == Format::kInt8 ? 1 : format == Format::kInt4 ? kv_groups(head_dim) : 0;
  return kv_code_bytes(format, head_dim) + static_cast<size_t>(scale_rows) * 64;
}
// Bytes of one layer's keys (or values) in one block, scales included.
constexpr size_t kv_plane_bytes(Format format, int n_kv_heads, int page_tokens, int head_dim) {
  return static_cast<size_t>(n_kv_heads) * static_cast<size_t>((page_tokens + kKvTile - 1) / kKvTile) *
         kv_tile_bytes(format, head_dim);
}

// The tile of keys (or values) that holds `position`.
inline std::byte* kv_tile(const KvView& kv, bool keys, int kv_head, int position) {
  const Format format = keys ? kv.key_format : kv.value_format;
  const int page = position / kv.page_tokens, slot = position % kv.page_tokens;
  const size_t tile = static_cast<size_t>(kv_head) * static_cast<size_t>(kv.page_tokens / kKvTile) +
                      static_cast<size_t>(slot / kKvTile);
  return kv.base + static_cast<size_t>(kv.blocks[page]) * kv.block_bytes +
         (keys ? kv.key_offset : kv.value_offset) + tile * kv_tile_bytes(format, kv.head_dim);
}

}  // namespace assay
