#include "numeric/sparse_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace assay {
namespace {

BlockMask random_mask(Random& random, int64_t rows, int64_t cols) {
  BlockMask mask{.rows = rows, .cols = cols, .kept = {}};
  for (int64_t i = 0; i < mask.tiles() * mask.blocks(); ++i) mask.kept.push_back(random.below(2) == 0);
  return mask;
}

// Kept values are within half a step of their group, whose extent is read off independently; dropped ones are 0.
TEST(SparseGroups, kept_values_are_within_half_a_step_and_dropped_ones_zero) {
  Random random(1, "sparse");
  for (const int group : {32, 64, 128}) {
    for (const bool fit : {false, true}) {
      const int64_t rows = random.between(1, 50), cols = random.between(1, 700);
      std::vector<float> values;
      for (int64_t i = 0; i < rows * cols; ++i) values.push_back(static_cast<float>(random.normal()));
      const BlockMask mask = random_mask(random, rows, cols);
      const SparseGroups sparse = quantise_sparse(values, mask, group, fit, {}).value();
      std::vector<float> back(static_cast<size_t>(cols));
      for (int64_t row = 0; row < rows; ++row) {
        dequantise_row(sparse, row, back);
        // Members of each group, in order of the kept blocks.
        std::vector<std::vector<int64_t>> members;
        int n_blocks = 0;
        for (int64_t block = 0; block < mask.blocks(); ++block) {
          if (!mask.keeps(row / 16, block)) continue;
          if (n_blocks++ % (group / 32) == 0) members.emplace_back();
          for (int64_t c = block * 32; c < std::min(cols, block * 32 + 32); ++c) members.back().push_back(c);
        }
        std::vector<bool> kept(static_cast<size_t>(cols));
        for (const auto& columns : members) {
          float low = INFINITY, high = -INFINITY;
          for (const int64_t c : columns) {
            low = std::min(low, values[static_cast<size_t>(row * cols + c)]);
            high = std::max(high, values[static_cast<size_t>(row * cols + c)]);
          }
          const double step = static_cast<double>(high - low) / 15;
          double squares = 0, plain_squares = 0;
          for (const int64_t c : columns) {
            kept[static_cast<size_t>(c)] = true;
            const double w = values[static_cast<size_t>(row * cols + c)];
            const double error = back[static_cast<size_t>(c)] - w;
            // Scale and minimum are f16: 15 steps are off by up to 15 * 2^-11 of a step, the minimum by 2^-11.
            if (!fit) {
              ASSERT_LE(std::abs(error), step * 0.51 + std::abs(w) * 0x1p-10 + 4 * 0x1p-11);
            }
            squares += error * error;
            const double nearest = low + std::round((w - low) / step) * step;
            plain_squares += (nearest - w) * (nearest - w);
          }
          if (fit && columns.size() > 1) {
            ASSERT_LE(squares, plain_squares * 1.02 + 1e-12);
          }
        }
        for (int64_t c = 0; c < cols; ++c) {
          if (!kept[static_cast<size_t>(c)]) {
            ASSERT_EQ(back[static_cast<size_t>(c)], 0);
          }
        }
      }
    }
  }
}

TEST(SparseGroups, moments_weigh_the_fit) {
  Random random(2, "moments");
  std::vector<float> values;
  for (int i = 0; i < 16 * 64; ++i) values.push_back(static_cast<float>(random.normal()));
  std::vector<float> moments(64, 0.01F);
  std::fill_n(moments.begin(), 16, 1.0F);
  const BlockMask all{.rows = 16, .cols = 64, .kept = {1, 1}};
  const auto error_of_heavy = [&](std::span<const float> weights) {
    const SparseGroups sparse = quantise_sparse(values, all, 64, true, weights).value();
    std::vector<float> back(64);
    double error = 0;
    for (int64_t row = 0; row < 16; ++row) {
      dequantise_row(sparse, row, back);
      for (size_t c = 0; c < 16; ++c) error += std::pow(back[c] - values[static_cast<size_t>(row) * 64 + c], 2);
    }
    return error;
  };
  EXPECT_LT(error_of_heavy(moments), 0.8 * error_of_heavy({}));
}

TEST(SparseGroups, groups_that_are_no_multiple_of_a_block_are_refused) {
  const BlockMask mask{.rows = 1, .cols = 32, .kept = {1}};
  const std::vector<float> values(32, 1.0F);
  EXPECT_FALSE(quantise_sparse(values, mask, 16, false, {}).has_value());
  EXPECT_FALSE(quantise_sparse(std::vector<float>(31), mask, 32, false, {}).has_value());
  EXPECT_FALSE(quantise_sparse(std::vector<float>(32, NAN), mask, 32, false, {}).has_value());
}

}  // namespace
}  // namespace assay
