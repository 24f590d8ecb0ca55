#include "numeric/block_parts.h"

#include <bit>
#include <cstring>
#include <limits>

#include "numeric/float16.h"

namespace assay::numeric_internal {
namespace {

uint8_t byte_at(const std::byte* block, int index) {
  return static_cast<uint8_t>(block[index]);
}

uint32_t little_endian(const std::byte* bytes, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value |= uint32_t{byte_at(bytes, i)} << (8 * i);
  return value;
}

float f16_at(const std::byte* block, int index) {
  return f16_bits_to_f32(static_cast<uint16_t>(little_endian(block + index, 2)));
}

// `half` bytes hold 2 * half nibbles: the low ones first, then the high ones.
void split_nibbles(const std::byte* __restrict packed, int half, uint8_t* __restrict codes) {
  for (int i = 0; i < half; ++i) {
    codes[i] = byte_at(packed, i) & 15;
    codes[half + i] = byte_at(packed, i) >> 4;
  }
}

void map_codes(const std::array<uint8_t, 16>& table, int count, uint8_t* codes) {
  for (int i = 0; i < count; ++i) codes[i] = table[codes[i]];
}

// ---- blocks of 32
// -------------------------------------------------------------------------------------------------

void take_q4_0(const std::byte* block, BlockParts& parts) {
  parts.scales[0] = f16_at(block, 0);
  split_nibbles(block + 2, 16, parts.codes.data());
}

void take_q4_1(const std::byte* block, BlockParts& parts) {
  parts.scales[0] = f16_at(block, 0);
  parts.minimums[0] = f16_at(block, 2);
  split_nibbles(block + 4, 16, parts.codes.data());
}

// 32 low nibbles in `packed`, the fifth bits in the 32-bit word before them.
void split_five_bits(const std::byte* word, uint8_t* codes) {
  split_nibbles(word + 4, 16, codes);
  const uint32_t high = little_endian(word, 4);
  for (uint32_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(codes[i] | ((high >> i) & 1) << 4);
}

void take_q5_0(const std::byte* block, BlockParts& parts) {
  parts.scales[0] = f16_at(block, 0);
  split_five_bits(block + 2, parts.codes.data());
}

void take_q5_1(const std::byte* block, BlockParts& parts) {
  parts.scales[0] = f16_at(block, 0);
  parts.minimums[0] = f16_at(block, 2);
  split_five_bits(block + 4, parts.codes.data());
}

void take_q8_0(const std::byte* block, BlockParts& parts) {
  parts.scales[0] = f16_at(block, 0);
  for (int i = 0; i < 32; ++i) parts.codes[static_cast<size_t>(i)] = byte_at(block, 2 + i) ^ 0x80;  // q + 128
}

// The 16 values of IQ4_NL and IQ4_XS (-127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113), plus 128.
constexpr std::array<uint8_t, 16> kNonLinear = {1,   24,  45,  63,  79,  93,  106, 118,
                                                129, 141, 153, 166, 181, 197, 217, 241};

void take_iq4_nl(const std::byte* block, BlockParts& parts) {
  take_q4_0(block, parts);
  map_codes(kNonLinear, 32, parts.codes.data());
}

// FP4 E2M1 in halves (0 1 2 3 4 6 8 12 and the same below zero), plus 12. Source: OCP Microscaling
// Formats 1.0.
constexpr std::array<uint8_t, 16> kE2M1 = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

void take_mxfp4(const std::byte* block, BlockParts& parts) {
  // E8M0: 2^(e - 127), 255 is NaN; here halved, because the codes are doubled. 2^-128 and 2^-127 are
  // subnormal.
  const uint32_t exponent = byte_at(block, 0);
  const uint32_t halved = exponent < 2 ? 0x00200000U << exponent : (exponent - 1) << 23;
  parts.scales[0] = exponent == 255 ? std::numeric_limits<float>::quiet_NaN() : std::bit_cast<float>(halved);
  split_nibbles(block + 1, 16, parts.codes.data());
  map_codes(kE2M1, 32, parts.codes.data());
}

// ---- blocks of 256
// ------------------------------------------------------------------------------------------------

// 32 bytes hold 8 / kWidth runs of 32 bit fields, lowest bits first: each field becomes bits kShift and up of
// a code.
template <int kWidth, int kShift>
void add_fields(const std::byte* __restrict packed, uint8_t* __restrict codes) {
  constexpr int kMask = (1 << kWidth) - 1;
  for (int run = 0; run < 8 / kWidth; ++run) {
    for (int i = 0; i < 32; ++i) {
      const int field = (byte_at(packed, i) >> (kWidth * run)) & kMask;
      codes[32 * run + i] = static_cast<uint8_t>((kShift == 0 ? 0 : codes[32 * run + i]) | field << kShift);
    }
  }
}

void take_q2_k(const std::byte* block, BlockParts& parts) {
  const float scale = f16_at(block, 80);
  const float minimum = f16_at(block, 82);
  for (int i = 0; i < 16; ++i) {
    parts.scales[static_cast<size_t>(i)] = scale * static_cast<float>(byte_at(block, i) & 15);
    parts.minimums[static_cast<size_t>(i)] = -(minimum * static_cast<float>(byte_at(block, i) >> 4));
  }
  add_fields<2, 0>(block + 16, parts.codes.data());
  add_fields<2, 0>(block + 48, parts.codes.data() + 128);
}

void take_q3_k(const std::byte* block, BlockParts& parts) {
  const std::byte* packed_scales = block + 96;
  const float scale = f16_at(block, 108);
  for (int i = 0; i < 16; ++i) {
    const int low = (byte_at(packed_scales, i % 8) >> (i < 8 ? 0 : 4)) & 15;
    const int high = (byte_at(packed_scales, 8 + i % 4) >> (2 * (i / 4))) & 3;
    parts.scales[static_cast<size_t>(i)] = scale * static_cast<float>((low | high << 4) - 32);
  }
  add_fields<2, 0>(block + 32, parts.codes.data());
  add_fields<2, 0>(block + 64, parts.codes.data() + 128);
  add_fields<1, 2>(block, parts.codes.data());
}

// The eight 6-bit scales and minimums that Q4_K and Q5_K pack into 12 bytes.
void take_scales_and_minimums(const std::byte* block, BlockParts& parts) {
  const float scale = f16_at(block, 0);
  const float minimum = f16_at(block, 2);
  const std::byte* packed = block + 4;
  for (int i = 0; i < 8; ++i) {
    int scale_code = byte_at(packed, i % 4);
    int minimum_code = byte_at(packed, 4 + i % 4);
    if (i < 4) {
      scale_code &= 63;
      minimum_code &= 63;
    } else {
      const int low = byte_at(packed, 4 + i);
      scale_code = (scale_code >> 6) << 4 | (low & 15);
      minimum_code = (minimum_code >> 6) << 4 | low >> 4;
    }
    parts.scales[static_cast<size_t>(i)] = scale * static_cast<float>(scale_code);
    parts.minimums[static_cast<size_t>(i)] = -(minimum * static_cast<float>(minimum_code));
  }
}

void take_q4_k(const std::byte* block, BlockParts& parts) {
  take_scales_and_minimums(block, parts);
  for (int run = 0; run < 4; ++run) split_nibbles(block + 16 + 32 * run, 32, parts.codes.data() + 64 * run);
}

void take_q5_k(const std::byte* block, BlockParts& parts) {
  take_scales_and_minimums(block, parts);
  for (int run = 0; run < 4; ++run) split_nibbles(block + 48 + 32 * run, 32, parts.codes.data() + 64 * run);
  add_fields<1, 4>(block + 16, parts.codes.data());
}

void take_q6_k(const std::byte* block, BlockParts& parts) {
  const float scale = f16_at(block, 208);
  for (int i = 0; i < 16; ++i) {
    const auto sub_scale = static_cast<int8_t>(byte_at(block, 192 + i));
    parts.scales[static_cast<size_t>(i)] = scale * static_cast<float>(sub_scale);
  }
  // Two halves of 128 values: 64 bytes of nibbles and 32 bytes with four runs of upper bit pairs each.
  for (int half = 0; half < 2; ++half) {
    uint8_t* codes = parts.codes.data() + 128 * half;
    split_nibbles(block + 64 * half, 64, codes);
    add_fields<2, 4>(block + 128 + 32 * half, codes);
  }
}

void take_iq4_xs(const std::byte* block, BlockParts& parts) {
  const float scale = f16_at(block, 0);
  const uint32_t high_bits = little_endian(block + 2, 2);
  for (int i = 0; i < 8; ++i) {
    const int low = (byte_at(block, 4 + i / 2) >> (4 * (i % 2))) & 15;
    const auto high = static_cast<int>((high_bits >> (2 * i)) & 3);
    parts.scales[static_cast<size_t>(i)] = scale * static_cast<float>((low | high << 4) - 32);
    split_nibbles(block + 8 + 16 * i, 16, parts.codes.data() + 32 * i);
  }
  map_codes(kNonLinear, 256, parts.codes.data());
}

}  // namespace

const IntegerBlock* integer_block(BlockType type) {
  static constexpr IntegerBlock kQ4_0 = {Format::kInt4, 32, 8, take_q4_0};
  static constexpr IntegerBlock kQ4_1 = {Format::kInt4, 32, -1, take_q4_1};
  static constexpr IntegerBlock kQ5_0 = {Format::kInt8, 32, 16, take_q5_0};
  static constexpr IntegerBlock kQ5_1 = {Format::kInt8, 32, -1, take_q5_1};
  static constexpr IntegerBlock kQ8_0 = {Format::kInt8, 32, 128, take_q8_0};
  static constexpr IntegerBlock kQ2_K = {Format::kInt4, 16, -1, take_q2_k};
  static constexpr IntegerBlock kQ3_K = {Format::kInt4, 16, 4, take_q3_k};
  static constexpr IntegerBlock kQ4_K = {Format::kInt4, 32, -1, take_q4_k};
  static constexpr IntegerBlock kQ5_K = {Format::kInt8, 32, -1, take_q5_k};
  static constexpr IntegerBlock kQ6_K = {Format::kInt8, 16, 32, take_q6_k};
  static constexpr IntegerBlock kIQ4_NL = {Format::kInt8, 32, 128, take_iq4_nl};
  static constexpr IntegerBlock kIQ4_XS = {Format::kInt8, 32, 128, take_iq4_xs};
  static constexpr IntegerBlock kMXFP4 = {Format::kInt8, 32, 12, take_mxfp4};
  switch (type) {
    case BlockType::kQ4_0:
      return &kQ4_0;
    case BlockType::kQ4_1:
      return &kQ4_1;
    case BlockType::kQ5_0:
      return &kQ5_0;
    case BlockType::kQ5_1:
      return &kQ5_1;
    case BlockType::kQ8_0:
      return &kQ8_0;
    case BlockType::kQ2_K:
      return &kQ2_K;
    case BlockType::kQ3_K:
      return &kQ3_K;
    case BlockType::kQ4_K:
      return &kQ4_K;
    case BlockType::kQ5_K:
      return &kQ5_K;
    case BlockType::kQ6_K:
      return &kQ6_K;
    case BlockType::kIQ4_NL:
      return &kIQ4_NL;
    case BlockType::kIQ4_XS:
      return &kIQ4_XS;
    case BlockType::kMXFP4:
      return &kMXFP4;
    case BlockType::kF32:
    case BlockType::kF16:
    case BlockType::kBF16:
    case BlockType::kF64:
    case BlockType::kFp8E4M3:
    case BlockType::kFp8E5M2:
    case BlockType::kI8:
    case BlockType::kI16:
    case BlockType::kI32:
    case BlockType::kI64:
    case BlockType::kCount:
      break;
  }
  return nullptr;
}

}  // namespace assay::numeric_internal
