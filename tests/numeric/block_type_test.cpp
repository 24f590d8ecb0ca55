#include "numeric/block_type.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "numeric/recorded_blocks.h"

namespace assay {
namespace {

BlockType type_at(int i) {
  return static_cast<BlockType>(i);
}
constexpr int kTypes = static_cast<int>(BlockType::kCount);

// The oracle is gguf-py's numpy code, numpy and ml_dtypes (record_blocks.py). The arithmetic is the same in
// f32, one product and at most one sum, so the bits must be equal; of NaN only that it is NaN.
TEST(BlockType, every_type_decodes_as_the_reference_does) {
  std::set<BlockType> seen;
  for (const auto& record : test::read_recorded_blocks()) {
    std::vector<float> decoded(record.values.size());
    decode(record.type, record.bytes, decoded);
    for (size_t i = 0; i < decoded.size(); ++i) {
      if (std::isnan(record.values[i])) {
        ASSERT_TRUE(std::isnan(decoded[i])) << name(record.type) << " value " << i;
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(decoded[i]), std::bit_cast<uint32_t>(record.values[i]))
            << name(record.type) << " value " << i << ": " << decoded[i] << " vs " << record.values[i];
      }
    }
    seen.insert(record.type);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kTypes));
}

TEST(BlockType, decode_of_unaligned_bytes_is_the_same) {
  for (const auto& record : test::read_recorded_blocks()) {
    std::vector<std::byte> shifted(record.bytes.size() + 1);
    std::ranges::copy(record.bytes, shifted.begin() + 1);
    std::vector<float> straight(record.values.size());
    std::vector<float> moved(record.values.size());
    decode(record.type, record.bytes, straight);
    decode(record.type, std::span(shifted).subspan(1), moved);
    ASSERT_EQ(std::memcmp(straight.data(), moved.data(), 4 * moved.size()), 0) << name(record.type);
  }
}

// The OCP Microscaling specification, 5.4.1: an E8M0 scale of 0xff is NaN.
TEST(BlockType, mxfp4_scale_255_is_nan) {
  std::vector<std::byte> block(17, std::byte{0x11});
  block[0] = std::byte{255};
  std::vector<float> values(32);
  decode(BlockType::kMXFP4, block, values);
  for (const float value : values) EXPECT_TRUE(std::isnan(value));
}

TEST(BlockType, names_are_distinct_and_layouts_are_whole_blocks) {
  std::set<std::string> names;
  for (int i = 0; i < kTypes; ++i) {
    names.emplace(name(type_at(i)));
    const BlockLayout shape = layout(type_at(i));
    EXPECT_TRUE(shape.values == 1 || shape.values == 32 || shape.values == 256) << name(type_at(i));
    EXPECT_GT(shape.bytes, 0);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kTypes));
}

TEST(BlockType, stored_bytes_counts_blocks) {
  EXPECT_EQ(stored_bytes(BlockType::kQ4_1, 64).value(), 40U);
  EXPECT_EQ(stored_bytes(BlockType::kQ6_K, 512).value(), 420U);
  EXPECT_EQ(stored_bytes(BlockType::kF64, 3).value(), 24U);
  EXPECT_EQ(stored_bytes(BlockType::kIQ4_XS, 0).value(), 0U);
}

TEST(BlockType, stored_bytes_refuses_part_of_a_block) {
  const auto result = stored_bytes(BlockType::kQ4_K, 255);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.error().message(), "Q4_K: expected a multiple of 256 values, found 255");
}

TEST(BlockType, stored_bytes_refuses_overflow) {
  EXPECT_FALSE(stored_bytes(BlockType::kF64, UINT64_MAX / 8 + 1).has_value());
  EXPECT_TRUE(stored_bytes(BlockType::kF64, UINT64_MAX / 8).has_value());
  EXPECT_FALSE(stored_bytes(BlockType::kQ8_0, UINT64_MAX - 31).has_value());
}

TEST(BlockTypeDeathTest, decode_checks_its_sizes) {
  const std::vector<std::byte> bytes(17);
  std::vector<float> values(32);
  EXPECT_DEATH(decode(BlockType::kQ4_0, bytes, values), "CHECK failed.*17 vs 18");
  std::vector<float> part(31);
  EXPECT_DEATH(decode(BlockType::kQ4_0, bytes, part), "CHECK failed");
}

}  // namespace
}  // namespace assay
