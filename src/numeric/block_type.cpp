#include "numeric/block_type.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "numeric/block_parts.h"
#include "numeric/convert.h"

namespace assay {
namespace {

using numeric_internal::BlockParts;
using numeric_internal::IntegerBlock;

struct BlockFacts {
  std::string_view name;
  BlockLayout layout;
};

constexpr std::array<BlockFacts, 23> kFacts = {{
    {"F32", {1, 4}},      {"F16", {1, 2}},        {"BF16", {1, 2}},     {"F64", {1, 8}},
    {"F8_E4M3", {1, 1}},  {"F8_E5M2", {1, 1}},    {"I8", {1, 1}},       {"I16", {1, 2}},
    {"I32", {1, 4}},      {"I64", {1, 8}},        {"Q4_0", {32, 18}},   {"Q4_1", {32, 20}},
    {"Q5_0", {32, 22}},   {"Q5_1", {32, 24}},     {"Q8_0", {32, 34}},   {"Q2_K", {256, 84}},
    {"Q3_K", {256, 110}}, {"Q4_K", {256, 144}},   {"Q5_K", {256, 176}}, {"Q6_K", {256, 210}},
    {"IQ4_NL", {32, 18}}, {"IQ4_XS", {256, 136}}, {"MXFP4", {32, 17}},
}};
static_assert(kFacts.size() == static_cast<size_t>(BlockType::kCount));

template <class Stored>
void decode_plain(std::span<const std::byte> src, std::span<float> dst) {
  for (size_t i = 0; i < dst.size(); ++i) {
    Stored value;
    std::memcpy(&value, src.data() + i * sizeof(Stored), sizeof(Stored));
    dst[i] = static_cast<float>(value);
  }
}

void decode_group(const uint8_t* codes, float scale, float minimum, int offset, std::span<float> dst) {
  if (offset >= 0) {
    for (size_t i = 0; i < dst.size(); ++i) dst[i] = scale * static_cast<float>(codes[i] - offset);
  } else {
    for (size_t i = 0; i < dst.size(); ++i) dst[i] = scale * static_cast<float>(codes[i]) + minimum;
  }
}

void decode_blocks(const IntegerBlock& kind, BlockLayout shape, std::span<const std::byte> src,
                   std::span<float> dst) {
  const auto values = static_cast<size_t>(shape.values);
  const auto group = static_cast<size_t>(kind.group);
  BlockParts parts{};
  const std::byte* block = src.data();
  for (size_t start = 0; start < dst.size(); start += values, block += shape.bytes) {
    kind.take_apart(block, parts);
    for (size_t i = 0; i < values / group; ++i) {
      decode_group(parts.codes.data() + i * group, parts.scales[i], parts.minimums[i], kind.offset,
                   dst.subspan(start + i * group, group));
    }
  }
}

}  // namespace

std::string_view name(BlockType type) {
  return kFacts.at(static_cast<size_t>(type)).name;
}

BlockLayout layout(BlockType type) {
  return kFacts.at(static_cast<size_t>(type)).layout;
}

Result<uint64_t> stored_bytes(BlockType type, uint64_t n_values) {
  const BlockLayout shape = layout(type);
  const auto values = static_cast<uint64_t>(shape.values);
  if (n_values % values != 0) {
    return fail(ErrorCode::kInvalidArgument, name(type), "expected a multiple of {} values, found {}", values,
                n_values);
  }
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(n_values / values, static_cast<uint64_t>(shape.bytes), &bytes)) {
    return fail(ErrorCode::kInvalidArgument, name(type), "{} values take more than 2^64 bytes", n_values);
  }
  return bytes;
}

void decode(BlockType type, std::span<const std::byte> src, std::span<float> dst) {
  const Result<uint64_t> expected = stored_bytes(type, dst.size());
  CHECK(expected.has_value());
  CHECK_OP(src.size(), ==, *expected);
  switch (type) {
    case BlockType::kF32:
      return decode_floats(Format::kF32, src, dst);
    case BlockType::kF16:
      return decode_floats(Format::kF16, src, dst);
    case BlockType::kBF16:
      return decode_floats(Format::kBF16, src, dst);
    case BlockType::kFp8E4M3:
      return decode_floats(Format::kFp8E4M3, src, dst);
    case BlockType::kFp8E5M2:
      return decode_floats(Format::kFp8E5M2, src, dst);
    case BlockType::kF64:
      return decode_plain<double>(src, dst);
    case BlockType::kI8:
      return decode_plain<int8_t>(src, dst);
    case BlockType::kI16:
      return decode_plain<int16_t>(src, dst);
    case BlockType::kI32:
      return decode_plain<int32_t>(src, dst);
    case BlockType::kI64:
      return decode_plain<int64_t>(src, dst);
    case BlockType::kQ4_0:
    case BlockType::kQ4_1:
    case BlockType::kQ5_0:
    case BlockType::kQ5_1:
    case BlockType::kQ8_0:
    case BlockType::kQ2_K:
    case BlockType::kQ3_K:
    case BlockType::kQ4_K:
    case BlockType::kQ5_K:
    case BlockType::kQ6_K:
    case BlockType::kIQ4_NL:
    case BlockType::kIQ4_XS:
    case BlockType::kMXFP4:
      return decode_blocks(*numeric_internal::integer_block(type), layout(type), src, dst);
    case BlockType::kCount:
      break;
  }
  CHECK(type < BlockType::kCount);
}

}  // namespace assay
