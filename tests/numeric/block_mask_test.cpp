#include "numeric/block_mask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace assay {
namespace {

std::vector<float> matrix(Random& random, int64_t rows, int64_t cols) {
  std::vector<float> values(static_cast<size_t>(rows * cols));
  for (int64_t r = 0; r < rows; ++r) {
    const double scale = std::exp(random.normal());  // rows, and so tiles, differ in importance
    for (int64_t c = 0; c < cols; ++c) {
      values[static_cast<size_t>(r * cols + c)] = static_cast<float>(scale * random.normal());
    }
  }
  return values;
}

double importance(std::span<const float> values, const BlockMask& mask, std::span<const float> moments,
                  int64_t tile, int64_t block) {
  double sum = 0;
  for (int64_t r = tile * 16; r < std::min(mask.rows, tile * 16 + 16); ++r) {
    for (int64_t c = block * 32; c < std::min(mask.cols, block * 32 + 32); ++c) {
      const double w = values[static_cast<size_t>(r * mask.cols + c)];
      sum += w * w * (moments.empty() ? 1.0 : static_cast<double>(moments[static_cast<size_t>(c)]));
    }
  }
  return sum;
}

struct Case {
  int64_t rows, cols;
};
constexpr Case kCases[] = {{16, 32}, {64, 576}, {40, 200}, {1, 1}, {100, 1000}, {16, 64}};

TEST(BlockMask, blockwise_keeps_the_same_count_of_the_best_in_each_span) {
  Random random(1, "blockwise");
  for (const Case& c : kCases) {
    for (const int64_t span : {0, 4, 1000}) {
      const std::vector<float> values = matrix(random, c.rows, c.cols);
      std::vector<float> moments;
      if (span != 4) {
        for (int64_t i = 0; i < c.cols; ++i) moments.push_back(static_cast<float>(random.uniform(0, 3)));
      }
      const BlockMask mask = prune_blockwise(values, c.rows, c.cols, moments, 0.5, span).value();
      const int64_t width = span == 0 || span > mask.blocks() ? mask.blocks() : span;
      for (int64_t tile = 0; tile < mask.tiles(); ++tile) {
        for (int64_t first = 0; first < mask.blocks(); first += width) {
          const int64_t last = std::min(first + width, mask.blocks());
          int64_t n = 0;
          double least_kept = INFINITY, most_dropped = 0;
          for (int64_t block = first; block < last; ++block) {
            const double value = importance(values, mask, moments, tile, block);
            n += mask.keeps(tile, block);
            if (mask.keeps(tile, block)) {
              least_kept = std::min(least_kept, value);
            } else {
              most_dropped = std::max(most_dropped, value);
            }
          }
          ASSERT_EQ(n, (last - first + 1) / 2);
          ASSERT_GE(least_kept, most_dropped);
        }
      }
    }
  }
}

TEST(BlockMask, global_keeps_the_best_within_the_limits_of_each_tile) {
  Random random(2, "global");
  for (const Case& c : kCases) {
    const std::vector<float> values = matrix(random, c.rows, c.cols);
    const BlockMask mask = prune_global(values, c.rows, c.cols, {}, 0.5).value();
    const int64_t n = mask.tiles() * mask.blocks();
    ASSERT_EQ(mask.n_kept(), (n + 1) / 2);
    const auto least = static_cast<int64_t>(std::ceil(0.25 * static_cast<double>(mask.blocks())));
    const auto most = static_cast<int64_t>(std::ceil(0.75 * static_cast<double>(mask.blocks())));
    // No swap of a kept block that its tile may give up for a dropped one that its tile may take is a gain.
    double least_free = INFINITY, most_wanted = 0;
    for (int64_t tile = 0; tile < mask.tiles(); ++tile) {
      const int64_t kept = mask.n_kept(tile);
      ASSERT_GE(kept, std::min(least, mask.n_kept()));
      ASSERT_LE(kept, most);
      double least_kept = INFINITY, most_dropped = 0;
      for (int64_t block = 0; block < mask.blocks(); ++block) {
        const double value = importance(values, mask, {}, tile, block);
        if (mask.keeps(tile, block)) {
          least_kept = std::min(least_kept, value);
        } else {
          most_dropped = std::max(most_dropped, value);
        }
      }
      ASSERT_GE(least_kept, most_dropped);
      if (kept > least) least_free = std::min(least_free, least_kept);
      if (kept < most) most_wanted = std::max(most_wanted, most_dropped);
    }
    ASSERT_GE(least_free, most_wanted);
  }
}

// Rows of two very different sizes: without the limits every block would come from the large ones.
TEST(BlockMask, global_rebalances_tiles) {
  std::vector<float> values(32 * 256, 1.0F);
  std::fill(values.begin() + 16 * 256, values.end(), 100.0F);
  const BlockMask mask = prune_global(values, 32, 256, {}, 0.5).value();
  EXPECT_EQ(mask.n_kept(0), 2);
  EXPECT_EQ(mask.n_kept(1), 6);
}

TEST(BlockMask, moments_of_inputs_can_outweigh_magnitude) {
  std::vector<float> values(16 * 64, 1.0F);
  for (int64_t r = 0; r < 16; ++r) std::fill_n(values.begin() + r * 64, 32, 2.0F);
  std::vector<float> moments(64, 1.0F);
  EXPECT_TRUE(prune_blockwise(values, 16, 64, {}, 0.5).value().keeps(0, 0));
  std::fill(moments.begin() + 32, moments.end(), 5.0F);
  EXPECT_TRUE(prune_blockwise(values, 16, 64, moments, 0.5).value().keeps(0, 1));
}

TEST(BlockMask, shares_of_zero_and_one_drop_and_keep_all) {
  Random random(3, "shares");
  const std::vector<float> values = matrix(random, 20, 100);
  for (const auto prune : {+[](std::span<const float> v, double k) { return prune_blockwise(v, 20, 100, {}, k); },
                           +[](std::span<const float> v, double k) { return prune_global(v, 20, 100, {}, k); }}) {
    EXPECT_EQ(prune(values, 0).value().n_kept(), 0);
    EXPECT_EQ(prune(values, 1).value().n_kept(), 2 * 4);
    EXPECT_FALSE(prune(values, 1.5).has_value());
    EXPECT_FALSE(prune(values, NAN).has_value());
  }
  EXPECT_FALSE(prune_global(values, 20, 99, {}).has_value());
  EXPECT_FALSE(prune_global(values, 20, 100, std::vector<float>(3)).has_value());
  EXPECT_TRUE(prune_global({}, 0, 0, {}).has_value());
}

}  // namespace
}  // namespace assay
