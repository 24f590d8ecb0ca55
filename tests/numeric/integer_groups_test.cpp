#include "numeric/integer_groups.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "numeric/recorded_blocks.h"

namespace assay {
namespace {

struct Shape {
  int64_t rows;
  int64_t cols;
  int group;
};

// Values whose groups differ in size by orders of magnitude and in sign.
std::vector<float> varied_values(const Shape& shape, Random& random) {
  std::vector<float> values(static_cast<size_t>(shape.rows * shape.cols));
  double scale = 1;
  double center = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 13 == 0) {
      scale = std::exp2(random.uniform(-40, 40));
      center = random.below(3) == 0 ? scale * random.uniform(-8, 8) : 0;
    }
    values[i] = static_cast<float>(center + scale * random.normal());
  }
  return values;
}

std::vector<float> dequantise(const IntegerGroups& groups) {
  std::vector<float> values(static_cast<size_t>(groups.rows * groups.cols));
  for (int64_t row = 0; row < groups.rows; ++row) {
    dequantise_row(
        groups, row,
        std::span(values).subspan(static_cast<size_t>(row * groups.cols), static_cast<size_t>(groups.cols)));
  }
  return values;
}

Shape any_shape() {
  return {*rc::gen::inRange<int64_t>(1, 5), *rc::gen::inRange<int64_t>(1, 300),
          *rc::gen::element(16, 32, 64, 96, 128)};
}

// One half step of the grid, plus rounding: the code is found from value * (1 / scale), three f32 roundings
// of a number up to 255 (< 255 * 2^-22 steps), and scale * code + minimum is rounded twice (2^-24 of each of
// its terms).
float bound(float scale, float minimum, int levels) {
  const double step = scale;
  const double rounding = std::ldexp(step * levels + std::fabs(minimum), -23);
  return static_cast<float>((0.5 + levels * 0x1p-22) * step * (1 + 0x1p-20) + rounding);
}

void check_error_is_half_a_step(const Shape& shape, Format format, GroupScheme scheme, uint64_t seed) {
  Random random(seed, "values");
  const std::vector<float> values = varied_values(shape, random);
  const auto groups = quantise_groups(values, shape.rows, shape.cols, format, shape.group, scheme);
  RC_ASSERT(groups.has_value());
  const std::vector<float> back = dequantise(*groups);
  const int levels = format == Format::kInt4 ? 15 : 255;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / shape.cols;
    const auto col = static_cast<int64_t>(i) % shape.cols;
    const auto index = static_cast<size_t>(row * groups->groups_per_row() + col / shape.group);
    RC_ASSERT(static_cast<int>(groups->codes[i]) <= levels);
    RC_ASSERT(std::fabs(values[i] - back[i]) <=
              bound(groups->scales[index], groups->minimums[index], levels));
  }
}

RC_GTEST_PROP(QuantiseGroups, error_is_at_most_half_a_step, (uint64_t seed)) {
  const Shape shape = any_shape();
  for (const Format format : {Format::kInt8, Format::kInt4}) {
    check_error_is_half_a_step(shape, format, GroupScheme::kSymmetric, seed);
    check_error_is_half_a_step(shape, format, GroupScheme::kAsymmetric, seed);
  }
}

// The smallest and the largest value of each group (symmetric: the one of largest magnitude) lie on the grid:
// what is left is the rounding of scale * code + minimum, a few units in the last place of its largest term.
RC_GTEST_PROP(QuantiseGroups, extremes_lie_on_the_grid, (uint64_t seed)) {
  const Shape shape = {1, *rc::gen::inRange<int64_t>(1, 33), 32};
  Random random(seed, "extremes");
  const std::vector<float> values = varied_values(shape, random);
  const auto [low, high] = std::ranges::minmax_element(values);
  const float largest = std::max(std::fabs(*low), std::fabs(*high));
  for (const Format format : {Format::kInt8, Format::kInt4}) {
    const auto asymmetric = quantise_groups(values, 1, shape.cols, format, 32, GroupScheme::kAsymmetric);
    const std::vector<float> back = dequantise(asymmetric.value());
    RC_ASSERT(back[static_cast<size_t>(low - values.begin())] == *low);
    RC_ASSERT(std::fabs(back[static_cast<size_t>(high - values.begin())] - *high) <= 4 * 0x1p-23F * largest);
    const auto symmetric = quantise_groups(values, 1, shape.cols, format, 32, GroupScheme::kSymmetric);
    const std::vector<float> again = dequantise(symmetric.value());
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::fabs(values[i]) == largest) {
        RC_ASSERT(std::fabs(again[i] - values[i]) <= 4 * 0x1p-23F * largest);
      }
    }
  }
}

TEST(QuantiseGroups, constant_groups_are_exact) {
  for (const float constant : {0.0F, 1.0F, -3.5F, 1e-30F, -1e30F, 0.1F}) {
    const std::vector<float> values(70, constant);
    for (const Format format : {Format::kInt8, Format::kInt4}) {
      const auto asymmetric = quantise_groups(values, 2, 35, format, 32, GroupScheme::kAsymmetric);
      ASSERT_TRUE(asymmetric.has_value());
      EXPECT_EQ(dequantise(*asymmetric), values);
      const auto symmetric = quantise_groups(values, 2, 35, format, 32, GroupScheme::kSymmetric);
      ASSERT_TRUE(symmetric.has_value());
      for (const float value : dequantise(*symmetric)) {
        EXPECT_NEAR(value, constant, 4 * 0x1p-23F * std::fabs(constant));
      }
    }
  }
}

TEST(QuantiseGroups, values_already_on_the_grid_are_exact) {
  for (const Format format : {Format::kInt8, Format::kInt4}) {
    const int half = format == Format::kInt8 ? 127 : 7;
    std::vector<float> values;
    for (int code = -half; code <= half; ++code) values.push_back(0.25F * static_cast<float>(code));
    const auto cols = static_cast<int64_t>(values.size());
    const auto groups = quantise_groups(values, 1, cols, format, 256, GroupScheme::kSymmetric);
    ASSERT_TRUE(groups.has_value());
    EXPECT_EQ(dequantise(*groups), values);
    EXPECT_EQ(groups->zero_point, half + 1);
    EXPECT_EQ(groups->scales, std::vector<float>{0.25F});
  }
}

TEST(QuantiseGroups, last_group_may_be_short) {
  Random random(3, "short");
  const std::vector<float> values = varied_values({3, 33, 32}, random);
  const auto groups = quantise_groups(values, 3, 33, Format::kInt8, 32, GroupScheme::kSymmetric);
  ASSERT_TRUE(groups.has_value());
  EXPECT_EQ(groups->groups_per_row(), 2);
  ASSERT_EQ(groups->scales.size(), 6U);
  // A group of one value: its scale is that value's alone, whatever its neighbours are.
  for (size_t row = 0; row < 3; ++row)
    EXPECT_EQ(groups->scales[2 * row + 1], std::fabs(values[33 * row + 32]) / 127);
}

TEST(QuantiseGroups, tiny_and_huge_values_stay_finite) {
  for (const float size : {1e-45F, 1e-40F, 0x1p-126F, 0x1p126F}) {
    const std::vector<float> values = {size, -size, size / 2, 0};
    for (const auto scheme : {GroupScheme::kSymmetric, GroupScheme::kAsymmetric}) {
      const auto groups = quantise_groups(values, 1, 4, Format::kInt4, 32, scheme);
      ASSERT_TRUE(groups.has_value());
      const std::vector<float> back = dequantise(*groups);
      for (size_t i = 0; i < 4; ++i) {
        ASSERT_TRUE(std::isfinite(back[i])) << size;
        ASSERT_LE(std::fabs(back[i] - values[i]), bound(groups->scales[0], groups->minimums[0], 15)) << size;
      }
    }
  }
}

TEST(QuantiseGroups, nan_and_infinity_are_refused_by_place) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(), 0x1.8p126F}) {
    std::vector<float> values(60, 1.0F);
    values[43] = bad;
    const auto result = quantise_groups(values, 3, 20, Format::kInt8, 32, GroupScheme::kSymmetric);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().message().find("row 2, column 3"), std::string::npos)
        << result.error().message();
  }
}

TEST(QuantiseGroups, wrong_arguments_are_refused) {
  const std::vector<float> values(64);
  const auto code = [&](int64_t rows, int64_t cols, Format format, int group) {
    const auto result = quantise_groups(values, rows, cols, format, group, GroupScheme::kSymmetric);
    return result ? ErrorCode::kCount : result.error().code;
  };
  EXPECT_EQ(code(1, 64, Format::kInt8, 32), ErrorCode::kCount);
  EXPECT_EQ(code(1, 64, Format::kBF16, 32), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(1, 63, Format::kInt8, 32), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(-1, -64, Format::kInt8, 32), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(INT64_MAX, INT64_MAX, Format::kInt8, 32), ErrorCode::kInvalidArgument);
  for (const int group : {0, -32, 8, 17, 48}) {
    EXPECT_EQ(code(1, 64, Format::kInt8, group), ErrorCode::kInvalidArgument) << group;
  }
}

TEST(QuantiseGroups, no_values_give_no_groups) {
  for (const auto& [rows, cols] : {std::pair{0, 5}, std::pair{5, 0}, std::pair{0, 0}}) {
    const auto groups = quantise_groups({}, rows, cols, Format::kInt4, 32, GroupScheme::kAsymmetric);
    ASSERT_TRUE(groups.has_value());
    EXPECT_TRUE(groups->codes.empty() && groups->scales.empty() && groups->minimums.empty());
  }
}

// Every recorded block with finite scales: converted groups and decode() agree. Products scale * code are
// exact in f32 (block_parts.h), so both sides round the same real number once and must be equal.
TEST(ToIntegerGroups, agree_with_decode_on_every_type) {
  int types = 0;
  for (const auto& record : test::read_recorded_blocks()) {
    if (!has_integer_form(record.type)) continue;
    ++types;
    const BlockLayout shape = layout(record.type);
    const auto values = static_cast<size_t>(shape.values);
    int converted = 0;
    for (size_t block = 0; block < record.values.size() / values; ++block) {
      const auto bytes =
          std::span(record.bytes)
              .subspan(block * static_cast<size_t>(shape.bytes), static_cast<size_t>(shape.bytes));
      std::vector<float> expected(values);
      decode(record.type, bytes, expected);
      const auto groups = to_integer_groups(record.type, bytes, 1, shape.values);
      if (!std::ranges::all_of(expected, [](float value) { return std::isfinite(value); })) {
        ASSERT_FALSE(groups.has_value()) << name(record.type);
        EXPECT_EQ(groups.error().code, ErrorCode::kCorrupt);
        continue;
      }
      ASSERT_TRUE(groups.has_value()) << groups.error().message();
      EXPECT_EQ(dequantise(*groups), expected) << name(record.type) << " block " << block;
      ++converted;
    }
    EXPECT_GE(converted, 2) << name(record.type);
  }
  EXPECT_EQ(types, 13);
}

TEST(ToIntegerGroups, zero_point_stands_for_every_minimum) {
  for (const auto& record : test::read_recorded_blocks()) {
    if (!has_integer_form(record.type)) continue;
    const BlockLayout shape = layout(record.type);
    const auto bytes = std::span(record.bytes).first(static_cast<size_t>(shape.bytes));
    const auto groups = to_integer_groups(record.type, bytes, 1, shape.values);
    ASSERT_TRUE(groups.has_value());
    const int levels = groups->format == Format::kInt4 ? 15 : 255;
    EXPECT_LE(*std::ranges::max_element(groups->codes), levels) << name(record.type);
    if (groups->zero_point < 0) continue;
    for (size_t i = 0; i < groups->scales.size(); ++i) {
      EXPECT_EQ(groups->minimums[i], -static_cast<float>(groups->zero_point) * groups->scales[i]);
    }
  }
}

TEST(ToIntegerGroups, rows_lie_one_after_another) {
  for (const auto& record : test::read_recorded_blocks()) {
    if (record.type != BlockType::kQ8_0) continue;
    // The first eight recorded blocks have ordinary scales: four rows of two blocks.
    const auto bytes = std::span(record.bytes).first(8 * 34);
    const auto groups = to_integer_groups(record.type, bytes, 4, 64);
    ASSERT_TRUE(groups.has_value());
    EXPECT_EQ(groups->groups_per_row(), 2);
    EXPECT_EQ(groups->zero_point, 128);
    EXPECT_EQ(dequantise(*groups), std::vector(record.values.begin(), record.values.begin() + 256));
  }
}

TEST(ToIntegerGroups, wrong_arguments_are_refused) {
  const std::vector<std::byte> bytes(36);
  const auto code = [&](BlockType type, int64_t rows, int64_t cols) {
    const auto result = to_integer_groups(type, bytes, rows, cols);
    return result ? ErrorCode::kCount : result.error().code;
  };
  EXPECT_EQ(code(BlockType::kQ4_0, 1, 64), ErrorCode::kCount);
  EXPECT_EQ(code(BlockType::kQ4_0, 2, 32), ErrorCode::kCount);
  EXPECT_EQ(code(BlockType::kQ4_0, 4, 16), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(BlockType::kQ4_0, 1, 32), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(BlockType::kQ4_0, -1, -64), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(BlockType::kQ4_0, INT64_MAX, 64), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(BlockType::kF16, 1, 18), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace assay
