#include "kernels/sparse_matrix.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/units.h"
#include "numeric/float16.h"

namespace assay {
namespace {

static_assert(kBlockRows == kTileRows && kBlockCols == kColumnUnit);
constexpr int64_t kBlockBytes = kBlockRows * kBlockCols / 2;

Result<void> check_parts(const SparseGroups& sparse) {
  const IntegerGroups& groups = sparse.groups;
  const BlockMask& mask = sparse.mask;
  const bool shapes_fit =
      mask.rows >= 0 && mask.cols >= 0 && groups.rows == mask.rows && groups.cols == mask.cols &&
      mask.kept.size() == static_cast<size_t>(mask.tiles() * mask.blocks()) &&
      groups.codes.size() == static_cast<size_t>(mask.rows * mask.cols) && groups.group > 0 &&
      groups.group % kBlockCols == 0 &&
      groups.scales.size() == static_cast<size_t>(groups.rows * groups.groups_per_row()) &&
      groups.minimums.size() == groups.scales.size();
  if (!shapes_fit || groups.format != Format::kInt4 || groups.zero_point >= 0) {
    return fail(ErrorCode::kInvalidArgument, "sparse matrix",
                "expected a mask and int4 groups with minimums of one shape, a group of a multiple of 32");
  }
  uint8_t used_bits = 0;
  for (const uint8_t code : groups.codes) used_bits |= code;
  if (used_bits > 15) {
    return fail(ErrorCode::kInvalidArgument, "sparse matrix", "expected int4 codes of at most 15");
  }
  return {};
}

// Where tiles start, in blocks and in groups, and the input block of every kept block.
Result<BlockIndex> index_blocks(const BlockMask& mask, int64_t blocks_per_group) {
  const auto n_tiles = static_cast<size_t>(mask.tiles());
  BlockIndex index;
  ASSIGN_OR_RETURN(index.tile_starts, AlignedBuffer::allocate((n_tiles + 1) * sizeof(int32_t)));
  ASSIGN_OR_RETURN(index.group_starts, AlignedBuffer::allocate((n_tiles + 1) * sizeof(int32_t)));
  ASSIGN_OR_RETURN(index.columns,
                   AlignedBuffer::allocate(static_cast<size_t>(mask.n_kept()) * sizeof(int32_t)));
  int32_t n_blocks = 0, n_groups = 0;
  for (int64_t tile = 0; tile < mask.tiles(); ++tile) {
    index.tile_starts.as<int32_t>()[tile] = n_blocks;
    index.group_starts.as<int32_t>()[tile] = n_groups;
    for (int64_t block = 0; block < mask.blocks(); ++block) {
      if (mask.keeps(tile, block)) index.columns.as<int32_t>()[n_blocks++] = static_cast<int32_t>(block);
    }
    n_groups += static_cast<int32_t>(ceil_div(mask.n_kept(tile), blocks_per_group));
  }
  index.tile_starts.as<int32_t>()[mask.tiles()] = n_blocks;
  index.group_starts.as<int32_t>()[mask.tiles()] = n_groups;
  return index;
}

void fill_block(const IntegerGroups& groups, int64_t tile, int64_t block, std::byte* dst) {
  const int64_t first = block * kBlockCols;
  for (int64_t lane = 0; lane < kTileRows && tile * kTileRows + lane < groups.rows; ++lane) {
    const uint8_t* row = groups.codes.data() + (tile * kTileRows + lane) * groups.cols;
    for (int64_t k = first; k < std::min(first + kBlockCols, groups.cols); ++k) {
      const int64_t at = (k - first) / 8 * kTileRows * 4 + lane * 4 + k % 4;
      dst[at] |= std::byte{static_cast<uint8_t>(k % 8 < 4 ? row[k] : row[k] << 4)};
    }
  }
}

bool fits_f16(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) {
    return std::bit_cast<uint32_t>(f16_bits_to_f32(f32_to_f16_bits(value))) == std::bit_cast<uint32_t>(value);
  });
}

// src: [rows, groups_per_row] -> [tile][group][16]
Result<AlignedBuffer> pack_parts(const PackedMatrix& matrix, const IntegerGroups& groups,
                                 std::span<const float> src) {
  const int32_t* starts = matrix.blocks.group_starts.as<int32_t>();
  const bool half = matrix.scale_format == Format::kF16;
  const auto n = static_cast<size_t>(starts[matrix.n_tiles()]) * kTileRows;
  ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::allocate(n * (half ? 2 : 4)));
  for (int64_t output = 0; output < matrix.n_outputs; ++output) {
    const int64_t tile = output / kTileRows;
    for (int64_t group = starts[tile]; group < starts[tile + 1]; ++group) {
      const float value = src[static_cast<size_t>(output * groups.groups_per_row() + group - starts[tile])];
      const int64_t at = group * kTileRows + output % kTileRows;
      if (half) {
        buffer.as<uint16_t>()[at] = f32_to_f16_bits(value);
      } else {
        buffer.as<float>()[at] = value;
      }
    }
  }
  return buffer;
}

float part_at(const PackedMatrix& matrix, const AlignedBuffer& buffer, int64_t index) {
  return matrix.scale_format == Format::kF16 ? f16_bits_to_f32(buffer.as<uint16_t>()[index])
                                             : buffer.as<float>()[index];
}

}  // namespace

Result<PackedMatrix> pack_sparse(const SparseGroups& sparse) {
  RETURN_IF_ERROR(check_parts(sparse));
  const IntegerGroups& groups = sparse.groups;
  PackedMatrix matrix;
  matrix.format = Format::kInt4;
  matrix.n_outputs = groups.rows;
  matrix.n_inputs = groups.cols;
  matrix.padded_inputs = round_up(groups.cols, kColumnUnit);
  matrix.group = groups.group;
  if (fits_f16(groups.scales) && fits_f16(groups.minimums)) matrix.scale_format = Format::kF16;
  ASSIGN_OR_RETURN(matrix.blocks, index_blocks(sparse.mask, groups.group / kBlockCols));
  const int32_t* starts = matrix.blocks.tile_starts.as<int32_t>();
  ASSIGN_OR_RETURN(matrix.codes, AlignedBuffer::allocate(
                                     static_cast<size_t>(starts[matrix.n_tiles()] * kBlockBytes)));
  for (int64_t tile = 0; tile < matrix.n_tiles(); ++tile) {
    for (int64_t i = starts[tile]; i < starts[tile + 1]; ++i) {
      fill_block(groups, tile, matrix.blocks.columns.as<int32_t>()[i], matrix.codes.data() + i * kBlockBytes);
    }
  }
  ASSIGN_OR_RETURN(matrix.scales, pack_parts(matrix, groups, groups.scales));
  ASSIGN_OR_RETURN(matrix.minimums, pack_parts(matrix, groups, groups.minimums));
  return matrix;
}

void unpack_sparse_row(const PackedMatrix& matrix, int64_t output, std::span<float> dst) {
  CHECK(matrix.is_sparse());
  const int64_t tile = output / kTileRows, lane = output % kTileRows;
  const int32_t* starts = matrix.blocks.tile_starts.as<int32_t>();
  const int64_t first_group = matrix.blocks.group_starts.as<int32_t>()[tile];
  std::ranges::fill(dst, 0.0F);
  for (int64_t i = starts[tile]; i < starts[tile + 1]; ++i) {
    const auto* codes = reinterpret_cast<const uint8_t*>(matrix.codes.data() + i * kBlockBytes);
    const int64_t group = first_group + (i - starts[tile]) * kBlockCols / matrix.group;
    const float scale = part_at(matrix, matrix.scales, group * kTileRows + lane);
    const float minimum = part_at(matrix, matrix.minimums, group * kTileRows + lane);
    const int64_t first = matrix.blocks.columns.as<int32_t>()[i] * kBlockCols;
    for (int64_t k = 0; k < kBlockCols && first + k < matrix.n_inputs; ++k) {
      const int code = (codes[k / 8 * kTileRows * 4 + lane * 4 + k % 4] >> (k % 8 < 4 ? 0 : 4)) & 15;
      dst[static_cast<size_t>(first + k)] = scale * static_cast<float>(code) + minimum;
    }
  }
}

}  // namespace assay
