// f16, bf16 and fp8 against an independent reading of the formats (float_oracle.h), over every code, every
// midpoint between codes and the f32 neighbours of both, and against numbers recorded from numpy and
// ml_dtypes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <string>

#include "base/random.h"
#include "numeric/bfloat16.h"
#include "numeric/float16.h"
#include "numeric/float8.h"
#include "numeric/float_oracle.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace assay {
namespace {

using test::FloatLayout;
using test::magnitudes_of;
using test::nearest;
using test::sign_bit;
using test::value_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Codec {
  std::string name;
  FloatLayout layout;
  std::function<uint32_t(float)> encode;  // overflow to infinity, or NaN where there is none
  std::function<float(uint32_t)> decode;
  uint32_t overflow;  // the code that overflow gives
};

uint16_t narrow16(uint32_t code) {
  return static_cast<uint16_t>(code);
}
uint8_t narrow8(uint32_t code) {
  return static_cast<uint8_t>(code);
}

const Codec kF16 = {"f16", test::kF16Layout, f32_to_f16_bits,
                    [](uint32_t code) { return f16_bits_to_f32(narrow16(code)); }, 0x7c00};
const Codec kBf16 = {"bf16", test::kBf16Layout, f32_to_bf16_bits,
                     [](uint32_t code) { return bf16_bits_to_f32(narrow16(code)); }, 0x7f80};
const Codec kE4M3 = {"e4m3", test::kE4M3Layout,
                     [](float value) { return f32_to_e4m3_bits(value, Overflow::kSpecial); },
                     [](uint32_t code) { return e4m3_bits_to_f32(narrow8(code)); }, 0x7f};
const Codec kE5M2 = {"e5m2", test::kE5M2Layout,
                     [](float value) { return f32_to_e5m2_bits(value, Overflow::kSpecial); },
                     [](uint32_t code) { return e5m2_bits_to_f32(narrow8(code)); }, 0x7c};

class FloatFormat : public testing::TestWithParam<Codec> {};

INSTANTIATE_TEST_SUITE_P(All, FloatFormat, testing::Values(kF16, kBf16, kE4M3, kE5M2),
                         [](const auto& codec) { return codec.param.name; });

TEST_P(FloatFormat, every_code_decodes_to_its_value) {
  const Codec& codec = GetParam();
  for (uint32_t code = 0; code < 2 * sign_bit(codec.layout); ++code) {
    const double expected = value_of(codec.layout, code);
    const float actual = codec.decode(code);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(actual)) << code;
      ASSERT_EQ(std::signbit(actual), (code & sign_bit(codec.layout)) != 0) << code;
    } else {
      ASSERT_EQ(static_cast<double>(actual), expected) << code;
      ASSERT_EQ(std::signbit(actual), std::signbit(expected)) << code;
    }
  }
}

TEST_P(FloatFormat, every_code_survives_the_round_trip) {
  const Codec& codec = GetParam();
  for (uint32_t code = 0; code < 2 * sign_bit(codec.layout); ++code) {
    const uint32_t back = codec.encode(codec.decode(code));
    if (std::isnan(value_of(codec.layout, code))) {
      ASSERT_TRUE(std::isnan(value_of(codec.layout, back))) << code;
      ASSERT_EQ(back & sign_bit(codec.layout), code & sign_bit(codec.layout)) << code;
    } else {
      ASSERT_EQ(back, code);
    }
  }
}

void expect_nearest(const Codec& codec, const std::vector<double>& magnitudes, float value) {
  if (!std::isfinite(value)) return;
  const uint32_t index = nearest(magnitudes, value);
  const uint32_t magnitude = index <= codec.layout.largest ? index : codec.overflow;
  const uint32_t expected = magnitude | (std::signbit(value) ? sign_bit(codec.layout) : 0);
  ASSERT_EQ(codec.encode(value), expected) << std::hexfloat << value;
}

TEST_P(FloatFormat, rounds_to_nearest_even_around_every_code_and_midpoint) {
  const Codec& codec = GetParam();
  const std::vector<double> magnitudes = magnitudes_of(codec.layout);
  for (size_t i = 0; i + 1 < magnitudes.size(); ++i) {
    // Codes and midpoints are exact in f32: bf16, the widest, has 8 significant bits and f32 has 24. The one
    // exception, the value above bf16's largest, is 2^128 and is not tested as a float.
    for (const double exact : {magnitudes[i], (magnitudes[i] + magnitudes[i + 1]) / 2}) {
      const auto point = static_cast<float>(exact);
      ASSERT_EQ(static_cast<double>(point), exact);
      for (const float value : {point, std::nextafter(point, 0.0F), std::nextafter(point, kInfinity)}) {
        expect_nearest(codec, magnitudes, value);
        expect_nearest(codec, magnitudes, -value);
      }
    }
  }
}

TEST_P(FloatFormat, rounds_random_bit_patterns_to_nearest_even) {
  const Codec& codec = GetParam();
  const std::vector<double> magnitudes = magnitudes_of(codec.layout);
  Random random(20, codec.name);
  for (int i = 0; i < 300000; ++i) {
    expect_nearest(codec, magnitudes, std::bit_cast<float>(static_cast<uint32_t>(random.next())));
  }
}

TEST_P(FloatFormat, values_beyond_the_largest_overflow) {
  const Codec& codec = GetParam();
  const uint32_t sign = sign_bit(codec.layout);
  EXPECT_EQ(codec.encode(kInfinity), codec.overflow);
  EXPECT_EQ(codec.encode(-kInfinity), codec.overflow | sign);
  EXPECT_EQ(codec.encode(std::numeric_limits<float>::max()), codec.overflow);
  EXPECT_EQ(codec.encode(-std::numeric_limits<float>::max()), codec.overflow | sign);
}

TEST_P(FloatFormat, every_kind_of_nan_stays_nan_with_its_sign) {
  const Codec& codec = GetParam();
  for (const uint32_t payload : {0x400000U, 0x000001U, 0x200000U, 0x001fffU, 0x7fffffU}) {
    for (const uint32_t sign : {0U, 0x80000000U}) {
      const uint32_t code = codec.encode(std::bit_cast<float>(sign | 0x7f800000U | payload));
      EXPECT_TRUE(std::isnan(value_of(codec.layout, code))) << std::hex << payload;
      EXPECT_EQ((code & sign_bit(codec.layout)) != 0, sign != 0);
    }
  }
}

TEST(Float8, saturation_clamps_to_the_largest_and_keeps_the_sign) {
  EXPECT_EQ(f32_to_e4m3_bits(464.0F), 0x7e);
  EXPECT_EQ(f32_to_e4m3_bits(464.0F, Overflow::kSpecial), 0x7e);
  EXPECT_EQ(f32_to_e4m3_bits(std::nextafter(464.0F, kInfinity)), 0x7e);
  EXPECT_EQ(f32_to_e4m3_bits(std::nextafter(464.0F, kInfinity), Overflow::kSpecial), 0x7f);
  EXPECT_EQ(f32_to_e4m3_bits(-1e30F), 0xfe);
  EXPECT_EQ(f32_to_e4m3_bits(-kInfinity), 0xfe);
  EXPECT_EQ(f32_to_e5m2_bits(std::nextafter(61440.0F, 0.0F), Overflow::kSpecial), 0x7b);
  EXPECT_EQ(f32_to_e5m2_bits(61440.0F), 0x7b);
  EXPECT_EQ(f32_to_e5m2_bits(61440.0F, Overflow::kSpecial), 0x7c);
  EXPECT_EQ(f32_to_e5m2_bits(kInfinity), 0x7b);
  EXPECT_EQ(f32_to_e5m2_bits(-kInfinity, Overflow::kSpecial), 0xfc);
  EXPECT_EQ(e4m3_bits_to_f32(0x7e), kE4M3Max);
  EXPECT_EQ(e5m2_bits_to_f32(0x7b), kE5M2Max);
}

TEST(Float16, largest_constants_are_the_largest_codes) {
  EXPECT_EQ(f16_bits_to_f32(0x7bff), kF16Max);
  EXPECT_EQ(bf16_bits_to_f32(0x7f7f), kBf16Max);
}

// tests/numeric/record_floats.py made these: f32 bits, then numpy float16 and ml_dtypes bfloat16,
// float8_e4m3fn and float8_e5m2 codes, all with overflow to infinity or NaN.
TEST(FloatFormats, agree_with_numpy_and_ml_dtypes) {
  std::ifstream recorded(ASSAY_SOURCE_DIR "/tests/numeric/data/floats.txt");
  ASSERT_TRUE(recorded);
  uint32_t bits, f16, bf16, e4m3, e5m2;
  int rows = 0;
  while (recorded >> std::hex >> bits >> f16 >> bf16 >> e4m3 >> e5m2) {
    const auto value = std::bit_cast<float>(bits);
    ASSERT_EQ(kF16.encode(value), f16) << std::hex << bits;
    ASSERT_EQ(kBf16.encode(value), bf16) << std::hex << bits;
    ASSERT_EQ(kE4M3.encode(value), e4m3) << std::hex << bits;
    ASSERT_EQ(kE5M2.encode(value), e5m2) << std::hex << bits;
    ++rows;
  }
  EXPECT_EQ(rows, 3000);
}

#if defined(__x86_64__)
__attribute__((target("f16c,avx"))) uint16_t hardware_encode(float value) {
  return static_cast<uint16_t>(
      _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT), 0));
}
__attribute__((target("f16c,avx"))) float hardware_decode(uint16_t bits) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

TEST(Float16, agrees_with_the_cpu_instructions_bit_for_bit) {
  if (!__builtin_cpu_supports("f16c")) GTEST_SKIP() << "this CPU has no F16C";
  for (uint32_t code = 0; code < 65536; ++code) {
    ASSERT_EQ(std::bit_cast<uint32_t>(f16_bits_to_f32(narrow16(code))),
              std::bit_cast<uint32_t>(hardware_decode(narrow16(code))))
        << code;
  }
  // 2^22 patterns, evenly strided over all of f32 by an odd step.
  uint32_t bits = 0;
  for (uint32_t i = 0; i < (1U << 22); ++i, bits += 0x9e3779b1) {
    const auto value = std::bit_cast<float>(bits);
    ASSERT_EQ(f32_to_f16_bits(value), hardware_encode(value)) << std::hex << bits;
  }
}
#endif

}  // namespace
}  // namespace assay
