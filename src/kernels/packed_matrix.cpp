#include "kernels/packed_matrix.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/units.h"
#include "kernels/sparse_matrix.h"
#include "numeric/bfloat16.h"
#include "numeric/float16.h"
#include "numeric/float8.h"

namespace assay {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 40;
constexpr int64_t kWordBytes = 4;

// Where value (lane, k) of a tile lies when `kUnit` consecutive k are stored together, in values from the
// tile's start.
template <int kUnit>
int64_t place(int64_t lane, int64_t k) {
  return k / kUnit * kTileRows * kUnit + lane * kUnit + k % kUnit;
}

Result<PackedMatrix> make_matrix(Format format, int64_t n_outputs, int64_t n_inputs, uint64_t n_values) {
  if (n_outputs < 0 || n_inputs < 0 || n_inputs > kMostValues ||
      (n_inputs > 0 && n_outputs > kMostValues / n_inputs) ||
      n_values != static_cast<uint64_t>(n_outputs) * static_cast<uint64_t>(n_inputs)) {
    return fail(ErrorCode::kInvalidArgument, "packed matrix",
                "expected {} x {} values, at most 2^40, found {}", n_outputs, n_inputs, n_values);
  }
  PackedMatrix matrix;
  matrix.format = format;
  matrix.n_outputs = n_outputs;
  matrix.n_inputs = n_inputs;
  matrix.padded_inputs = round_up(n_inputs, kColumnUnit);
  ASSIGN_OR_RETURN(matrix.codes,
                   AlignedBuffer::allocate(static_cast<size_t>(matrix.n_tiles() * matrix.tile_bytes())));
  return matrix;
}

template <int kUnit, class T, class Convert>
void fill(PackedMatrix& matrix, std::span<const float> values, Convert convert) {
  T* codes = matrix.codes.as<T>();
  for (int64_t output = 0; output < matrix.n_outputs; ++output) {
    T* tile = codes + output / kTileRows * kTileRows * matrix.padded_inputs;
    const float* row = values.data() + output * matrix.n_inputs;
    for (int64_t k = 0; k < matrix.n_inputs; ++k) tile[place<kUnit>(output % kTileRows, k)] = convert(row[k]);
  }
}

// Codes k .. k + 3 of a row as one word, zeros past its end.
uint32_t load_four(const uint8_t* row, int64_t k, int64_t n) {
  uint32_t word = 0;
  if (k + 4 <= n) [[likely]] {
    std::memcpy(&word, row + k, sizeof(word));
  } else if (k < n) {
    std::memcpy(&word, row + k, static_cast<size_t>(n - k));
  }
  return word;
}

// Word by word: a lane takes four bytes at a time, which hold four codes (int8) or eight (int4).
void fill_codes(PackedMatrix& matrix, const IntegerGroups& groups) {
  const bool halves = matrix.format == Format::kInt4;
  const int64_t step = halves ? 8 : 4;
  const int64_t n = matrix.n_inputs;
  for (int64_t output = 0; output < matrix.n_outputs; ++output) {
    std::byte* lane =
        matrix.codes.data() + output / kTileRows * matrix.tile_bytes() + output % kTileRows * kWordBytes;
    const uint8_t* row = groups.codes.data() + output * n;
    for (int64_t k = 0; k < n; k += step, lane += kTileRows * kWordBytes) {
      uint32_t word = load_four(row, k, n);
      if (halves) word |= load_four(row, k + 4, n) << 4;  // every code is below 16: no byte spills
      std::memcpy(lane, &word, kWordBytes);
    }
  }
}

bool fits_f16(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) {
    return std::bit_cast<uint32_t>(f16_bits_to_f32(f32_to_f16_bits(value))) == std::bit_cast<uint32_t>(value);
  });
}

// src: [n_outputs, source_groups] -> [tile][group][16].
Result<AlignedBuffer> pack_scales(const PackedMatrix& matrix, std::span<const float> src,
                                  int64_t source_groups) {
  const int64_t n = matrix.n_tiles() * matrix.groups_per_row() * kTileRows;
  const bool half = matrix.scale_format == Format::kF16;
  ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::allocate(static_cast<size_t>(n) * (half ? 2 : 4)));
  for (int64_t output = 0; output < matrix.n_outputs; ++output) {
    const int64_t first = output / kTileRows * matrix.groups_per_row() * kTileRows + output % kTileRows;
    for (int64_t g = 0; g < source_groups; ++g) {
      const float value = src[static_cast<size_t>(output * source_groups + g)];
      if (half) {
        buffer.as<uint16_t>()[first + g * kTileRows] = f32_to_f16_bits(value);
      } else {
        buffer.as<float>()[first + g * kTileRows] = value;
      }
    }
  }
  return buffer;
}

Result<void> check_groups(const IntegerGroups& groups) {
  constexpr std::string_view kWhere = "integer groups";
  if (!is_integer(groups.format)) {
    return fail(ErrorCode::kInvalidArgument, kWhere, "expected format int8 or int4, found {}",
                name(groups.format));
  }
  if (groups.group != 16 && (groups.group <= 0 || groups.group % 32 != 0)) {
    return fail(ErrorCode::kInvalidArgument, kWhere, "expected a group of 16 or a multiple of 32, found {}",
                groups.group);
  }
  if (groups.zero_point > 255) {
    return fail(ErrorCode::kInvalidArgument, kWhere, "expected a zero point of at most 255, found {}",
                groups.zero_point);
  }
  const auto n_groups = static_cast<size_t>(groups.rows * groups.groups_per_row());
  if (groups.scales.size() != n_groups || (groups.zero_point < 0 && groups.minimums.size() != n_groups)) {
    return fail(ErrorCode::kInvalidArgument, kWhere, "expected {} scales and minimums, found {} and {}",
                n_groups, groups.scales.size(), groups.minimums.size());
  }
  if (groups.format == Format::kInt4) {
    uint8_t used_bits = 0;  // no early exit, so that it vectorises
    for (const uint8_t code : groups.codes) used_bits |= code;
    if (used_bits > 15) {
      return fail(ErrorCode::kInvalidArgument, kWhere, "expected int4 codes of at most 15, found {}",
                  *std::max_element(groups.codes.begin(), groups.codes.end()));
    }
  }
  return {};
}

float scale_at(const PackedMatrix& matrix, const AlignedBuffer& buffer, int64_t index) {
  return matrix.scale_format == Format::kF16 ? f16_bits_to_f32(buffer.as<uint16_t>()[index])
                                             : buffer.as<float>()[index];
}

void unpack_integer_row(const PackedMatrix& matrix, int64_t output, std::span<float> dst) {
  const uint8_t* tile = matrix.codes.as<uint8_t>() + output / kTileRows * matrix.tile_bytes();
  const int64_t lane = output % kTileRows;
  const int64_t first_scale = output / kTileRows * matrix.groups_per_row() * kTileRows + lane;
  const int zero_point = std::max(matrix.zero_point, 0);
  for (int64_t start = 0; start < matrix.n_inputs; start += matrix.group) {
    const int64_t at = first_scale + start / matrix.group * kTileRows;
    const float scale = scale_at(matrix, matrix.scales, at);
    const float minimum = matrix.zero_point >= 0 ? 0.0F : scale_at(matrix, matrix.minimums, at);
    const int64_t end = std::min<int64_t>(start + matrix.group, matrix.n_inputs);
    for (int64_t k = start; k < end; ++k) {
      const int code = matrix.format == Format::kInt8
                           ? tile[place<4>(lane, k)]
                           : (tile[k / 8 * kTileRows * 4 + lane * 4 + k % 4] >> (k % 8 < 4 ? 0 : 4)) & 15;
      dst[static_cast<size_t>(k)] = scale * static_cast<float>(code - zero_point) + minimum;
    }
  }
}

template <int kUnit, class T, class Convert>
void unpack_float_row(const PackedMatrix& matrix, int64_t output, std::span<float> dst, Convert convert) {
  const T* tile = matrix.codes.as<T>() + output / kTileRows * kTileRows * matrix.padded_inputs;
  for (int64_t k = 0; k < matrix.n_inputs; ++k) {
    dst[static_cast<size_t>(k)] = convert(tile[place<kUnit>(output % kTileRows, k)]);
  }
}

}  // namespace

Result<PackedMatrix> pack_floats(std::span<const float> values, int64_t n_outputs, int64_t n_inputs,
                                 Format format) {
  if (is_integer(format) || format == Format::kCount) {
    return fail(ErrorCode::kInvalidArgument, "packed matrix",
                "expected a float format; integers come as groups");
  }
  ASSIGN_OR_RETURN(PackedMatrix matrix, make_matrix(format, n_outputs, n_inputs, values.size()));
  switch (format) {
    case Format::kF32:
      fill<1, float>(matrix, values, [](float x) { return x; });
      break;
    case Format::kF16:
      fill<2, uint16_t>(matrix, values, [](float x) { return f32_to_f16_bits(x); });
      break;
    case Format::kBF16:
      fill<2, uint16_t>(matrix, values, [](float x) { return f32_to_bf16_bits(x); });
      break;
    case Format::kFp8E4M3:
      fill<4, uint8_t>(matrix, values, [](float x) { return f32_to_e4m3_bits(x); });
      break;
    case Format::kFp8E5M2:
      fill<4, uint8_t>(matrix, values, [](float x) { return f32_to_e5m2_bits(x); });
      break;
    case Format::kInt8:
    case Format::kInt4:
    case Format::kCount:
      break;
  }
  return matrix;
}

Result<PackedMatrix> pack_integers(const IntegerGroups& groups) {
  RETURN_IF_ERROR(check_groups(groups));
  ASSIGN_OR_RETURN(PackedMatrix matrix,
                   make_matrix(groups.format, groups.rows, groups.cols, groups.codes.size()));
  matrix.group = groups.group;
  matrix.zero_point = groups.zero_point;
  const bool has_minimums = groups.zero_point < 0;
  if (fits_f16(groups.scales) && (!has_minimums || fits_f16(groups.minimums)))
    matrix.scale_format = Format::kF16;
  fill_codes(matrix, groups);
  ASSIGN_OR_RETURN(matrix.scales, pack_scales(matrix, groups.scales, groups.groups_per_row()));
  if (has_minimums) {
    ASSIGN_OR_RETURN(matrix.minimums, pack_scales(matrix, groups.minimums, groups.groups_per_row()));
  }
  return matrix;
}

void unpack_row(const PackedMatrix& matrix, int64_t output, std::span<float> dst) {
  CHECK(output >= 0 && output < matrix.n_outputs);
  CHECK_OP(static_cast<int64_t>(dst.size()), ==, matrix.n_inputs);
  if (matrix.is_sparse()) return unpack_sparse_row(matrix, output, dst);
  switch (matrix.format) {
    case Format::kF32:
      return unpack_float_row<1, float>(matrix, output, dst, [](float x) { return x; });
    case Format::kF16:
      return unpack_float_row<2, uint16_t>(matrix, output, dst,
                                           [](uint16_t x) { return f16_bits_to_f32(x); });
    case Format::kBF16:
      return unpack_float_row<2, uint16_t>(matrix, output, dst,
                                           [](uint16_t x) { return bf16_bits_to_f32(x); });
    case Format::kFp8E4M3:
      return unpack_float_row<4, uint8_t>(matrix, output, dst, [](uint8_t x) { return e4m3_bits_to_f32(x); });
    case Format::kFp8E5M2:
      return unpack_float_row<4, uint8_t>(matrix, output, dst, [](uint8_t x) { return e5m2_bits_to_f32(x); });
    case Format::kInt8:
    case Format::kInt4:
      return unpack_integer_row(matrix, output, dst);
    case Format::kCount:
      break;
  }
}

}  // namespace assay
