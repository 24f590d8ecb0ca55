// Packing and unpacking of every format, against numeric's own conversions.
#include "kernels/packed_matrix.h"

#include <algorithm>

#include "kernels/activations.h"
#include "kernels/fixtures.h"
#include "numeric/convert.h"

namespace assay {
namespace {

using namespace kernels_test;

TEST(PackedMatrix, float_rows_come_back_as_numeric_rounds_them) {
  Random random(1, "pack_floats");
  for (const Format format :
       {Format::kF32, Format::kF16, Format::kBF16, Format::kFp8E4M3, Format::kFp8E5M2}) {
    for (int round = 0; round < 20; ++round) {
      const int64_t outputs = random.between(0, 40), inputs = random.between(1, 100);
      std::vector<float> values = normals(random, outputs * inputs, std::exp(random.uniform(-20, 20)));
      if (!values.empty()) values[random.below(values.size())] = std::numeric_limits<float>::infinity();
      const PackedMatrix matrix = *pack_floats(values, outputs, inputs, format);
      ASSERT_EQ(matrix.padded_inputs % kColumnUnit, 0);
      std::vector<std::byte> codes(values.size() * static_cast<size_t>(bits(format)) / 8);
      std::vector<float> expected(values.size());
      encode_floats(format, values, codes);
      decode_floats(format, codes, expected);
      std::vector<float> row(static_cast<size_t>(inputs));
      for (int64_t o = 0; o < outputs; ++o) {
        unpack_row(matrix, o, row);
        ASSERT_TRUE(same_bits(row, std::span(expected).subspan(static_cast<size_t>(o * inputs), row.size())))
            << name(format) << ", output " << o;
      }
    }
  }
}

TEST(PackedMatrix, integer_rows_come_back_as_numeric_dequantises_them) {
  Random random(2, "pack_integers");
  for (int round = 0; round < 100; ++round) {
    const Format format = random.below(2) == 0 ? Format::kInt8 : Format::kInt4;
    const int64_t outputs = random.between(1, 40), inputs = random.between(1, 300);
    constexpr int kGroups[] = {16, 32, 64, 96, 128, 256};
    const std::vector<float> values = normals(random, outputs * inputs);
    const IntegerGroups groups =
        *quantise_groups(values, outputs, inputs, format, kGroups[random.below(6)],
                         random.below(2) == 0 ? GroupScheme::kSymmetric : GroupScheme::kAsymmetric);
    const PackedMatrix matrix = *pack_integers(groups);
    std::vector<float> row(static_cast<size_t>(inputs)), expected(row.size());
    for (int64_t o = 0; o < outputs; ++o) {
      unpack_row(matrix, o, row);
      dequantise_row(groups, o, expected);
      for (size_t i = 0; i < row.size(); ++i)
        ASSERT_EQ(row[i], expected[i]) << name(format) << ", " << o << ", " << i;
    }
  }
}

TEST(PackedMatrix, layout_is_the_documented_one) {
  // Value of output o and column k is recognisable by itself: o in the upper bits, k in the lower.
  constexpr int64_t kOutputs = 18, kInputs = 40;
  std::vector<float> values;
  for (int64_t o = 0; o < kOutputs; ++o) {
    for (int64_t k = 0; k < kInputs; ++k) values.push_back(static_cast<float>(o * 64 + k));
  }
  const PackedMatrix matrix = *pack_floats(values, kOutputs, kInputs, Format::kF32);
  ASSERT_EQ(matrix.padded_inputs, 64);
  ASSERT_EQ(matrix.codes.size(), 2U * 64 * 16 * 4);
  for (int64_t o = 0; o < 32; ++o) {
    for (int64_t k = 0; k < 64; ++k) {
      const float expected = o < kOutputs && k < kInputs ? static_cast<float>(o * 64 + k) : 0.0F;
      ASSERT_EQ(matrix.codes.as<float>()[(o / 16 * 64 + k) * 16 + o % 16], expected) << o << ", " << k;
    }
  }
  IntegerGroups groups{.format = Format::kInt4, .group = 32, .rows = 1, .cols = 16, .zero_point = 0};
  for (uint8_t k = 0; k < 16; ++k) groups.codes.push_back(k);
  groups.scales = groups.minimums = {1.0F};
  const PackedMatrix nibbles = *pack_integers(groups);
  for (int j = 0; j < 4; ++j) {
    EXPECT_EQ(nibbles.codes.as<uint8_t>()[j], j | (j + 4) << 4);
    EXPECT_EQ(nibbles.codes.as<uint8_t>()[64 + j], (8 + j) | (12 + j) << 4);
  }
}

TEST(PackedMatrix, scales_are_f16_only_when_that_loses_nothing) {
  IntegerGroups groups{.format = Format::kInt8, .group = 32, .rows = 1, .cols = 32, .zero_point = -1};
  groups.codes.assign(32, 1);
  groups.scales = {0.5F};
  groups.minimums = {-3.25F};
  EXPECT_EQ(pack_integers(groups)->scale_format, Format::kF16);
  groups.minimums = {0.1F};
  EXPECT_EQ(pack_integers(groups)->scale_format, Format::kF32);
  groups.minimums = {1e6F};
  EXPECT_EQ(pack_integers(groups)->scale_format, Format::kF32);
}

TEST(PackedMatrix, wrong_shapes_and_codes_are_refused) {
  const std::vector<float> values(12);
  EXPECT_EQ(pack_floats(values, 3, 5, Format::kF32).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(pack_floats(values, -3, -4, Format::kF32).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(pack_floats(values, 3, 4, Format::kInt8).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(pack_floats({}, int64_t{1} << 40, int64_t{1} << 40, Format::kF32).error().code,
            ErrorCode::kInvalidArgument);
  IntegerGroups good{.format = Format::kInt4, .group = 32, .rows = 2, .cols = 4, .zero_point = 8};
  good.codes.assign(8, 15);
  good.scales.assign(2, 1);
  good.minimums.assign(2, -8);
  ASSERT_TRUE(pack_integers(good).has_value());
  const auto refused = [&](auto&& change) {
    IntegerGroups bad = good;
    change(bad);
    const auto result = pack_integers(bad);
    return !result && result.error().code == ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](IntegerGroups& g) { g.codes[3] = 16; }));
  EXPECT_TRUE(refused([](IntegerGroups& g) { g.codes.pop_back(); }));
  EXPECT_TRUE(refused([](IntegerGroups& g) { g.scales.pop_back(); }));
  EXPECT_TRUE(refused([](IntegerGroups& g) { g.group = 24; }));
  EXPECT_TRUE(refused([](IntegerGroups& g) { g.group = 0; }));
  EXPECT_TRUE(refused([](IntegerGroups& g) { g.format = Format::kF32; }));
  EXPECT_TRUE(refused([](IntegerGroups& g) { g.zero_point = 256; }));
}

TEST(ActivationBuffer, impossible_shapes_are_refused) {
  EXPECT_EQ(ActivationBuffer::create(-1, 4).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ActivationBuffer::create(int64_t{1} << 40, int64_t{1} << 40).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(ActivationBuffer::create(0, 0).has_value());
}

TEST(ActivationView, rows_select_values_scales_and_sums) {
  ActivationBuffer buffer = *ActivationBuffer::create(4, 70);
  buffer.shape_as(Format::kInt8, 4, 70);
  const ActivationView all = buffer.view(), some = all.rows(2, 1);
  EXPECT_EQ(some.n_rows, 1);
  EXPECT_EQ(static_cast<const int8_t*>(some.values) - static_cast<const int8_t*>(all.values), 2 * 96);
  EXPECT_EQ(some.scales - all.scales, 2 * 3);
  EXPECT_EQ(some.sums - all.sums, 2 * 6);
}

}  // namespace
}  // namespace assay
