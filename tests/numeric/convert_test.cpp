#include "numeric/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"
#include "numeric/bfloat16.h"
#include "numeric/float16.h"
#include "numeric/float8.h"

namespace assay {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<std::byte> encode(Format format, const std::vector<float>& values,
                              ConversionCounts* counts = nullptr) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(bits(format)) / 8);
  const ConversionCounts found = encode_floats(format, values, bytes);
  if (counts != nullptr) *counts = found;
  return bytes;
}

struct Limits {
  Format format;
  float largest;
  float first_overflow;  // the smallest f32 that no longer rounds to `largest`
};

// Half a step above the largest value is a tie; it goes to the even code, which is the largest one in e4m3
// only.
const std::vector<Limits> kLimits = {
    {Format::kF16, kF16Max, 65520.0F},
    {Format::kBF16, kBf16Max, std::ldexp(511.0F, 119)},
    {Format::kFp8E4M3, kE4M3Max, std::nextafter(464.0F, kInfinity)},
    {Format::kFp8E5M2, kE5M2Max, 61440.0F},
};

TEST(EncodeFloats, counts_saturation_from_the_first_value_that_overflows) {
  for (const Limits& limits : kLimits) {
    const float inside = std::nextafter(limits.first_overflow, 0.0F);
    const std::vector<float> values = {limits.largest, inside, -inside, 0.0F, 1.0F};
    ConversionCounts counts;
    std::vector<float> back(values.size());
    decode_floats(limits.format, encode(limits.format, values, &counts), back);
    EXPECT_EQ(counts, (ConversionCounts{0, 0})) << name(limits.format);
    EXPECT_EQ(back[1], limits.largest) << name(limits.format);

    encode(limits.format,
           {limits.first_overflow, -limits.first_overflow, kInfinity, -kInfinity, kNaN, -kNaN, 2.0F},
           &counts);
    EXPECT_EQ(counts, (ConversionCounts{4, 2})) << name(limits.format);
  }
}

TEST(EncodeFloats, f32_is_a_copy_that_counts_infinities_and_nan) {
  const std::vector<float> values = {1.5F, kInfinity, kNaN, -0.0F, std::numeric_limits<float>::max()};
  ConversionCounts counts;
  const std::vector<std::byte> bytes = encode(Format::kF32, values, &counts);
  EXPECT_EQ(std::memcmp(bytes.data(), values.data(), bytes.size()), 0);
  EXPECT_EQ(counts, (ConversionCounts{1, 1}));
}

TEST(EncodeFloats, whole_tensors_agree_with_single_values) {
  Random random(7, "convert");
  std::vector<float> values(1001);
  for (float& value : values)
    value = static_cast<float>(std::exp2(random.uniform(-30, 20)) * random.normal());
  const auto f16 = encode(Format::kF16, values);
  const auto bf16 = encode(Format::kBF16, values);
  const auto e4m3 = encode(Format::kFp8E4M3, values);
  const auto e5m2 = encode(Format::kFp8E5M2, values);
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half, brain;
    std::memcpy(&half, &f16[2 * i], 2);
    std::memcpy(&brain, &bf16[2 * i], 2);
    ASSERT_EQ(half, f32_to_f16_bits(values[i]));
    ASSERT_EQ(brain, f32_to_bf16_bits(values[i]));
    ASSERT_EQ(static_cast<uint8_t>(e4m3[i]), f32_to_e4m3_bits(values[i]));
    ASSERT_EQ(static_cast<uint8_t>(e5m2[i]), f32_to_e5m2_bits(values[i]));
  }
}

TEST(EncodeFloats, empty_spans_are_fine) {
  EXPECT_EQ(encode_floats(Format::kF16, {}, {}), ConversionCounts{});
  decode_floats(Format::kF32, {}, {});
}

TEST(EncodeFloatsDeathTest, wrong_sizes_and_integer_formats_are_bugs) {
  const std::vector<float> values(4);
  std::vector<std::byte> bytes(7);
  EXPECT_DEATH(encode_floats(Format::kF16, values, bytes), "CHECK failed.*7 vs 8");
  EXPECT_DEATH(encode_floats(Format::kInt8, values, bytes), "CHECK failed.*int8");
  std::vector<float> out(3);
  EXPECT_DEATH(decode_floats(Format::kBF16, bytes, out), "CHECK failed.*7 vs 6");
  EXPECT_DEATH(decode_floats(Format::kInt4, bytes, out), "CHECK failed.*int4");
}

}  // namespace
}  // namespace assay
