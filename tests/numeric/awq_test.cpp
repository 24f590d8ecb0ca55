#include "numeric/awq.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "numeric/integer_groups.h"

namespace assay {
namespace {

struct Problem {
  std::vector<float> values, magnitude, square;
  int64_t rows, cols;
};

// Inputs of very different sizes, as those of a transformer are.
Problem make_problem(Random& random, int64_t rows, int64_t cols) {
  Problem p{.values = {}, .magnitude = {}, .square = {}, .rows = rows, .cols = cols};
  for (int64_t i = 0; i < rows * cols; ++i) p.values.push_back(static_cast<float>(random.normal()));
  for (int64_t c = 0; c < cols; ++c) {
    const double size = std::exp(1.5 * random.normal());
    p.magnitude.push_back(static_cast<float>(0.8 * size));
    p.square.push_back(static_cast<float>(size * size));
  }
  return p;
}

// The expected squared output error at scales mean|x|^alpha, through quantise_groups, in double.
double expected_error(const Problem& p, double alpha, int group) {
  std::vector<double> scales;
  for (const float m : p.magnitude) scales.push_back(std::pow(static_cast<double>(m), alpha));
  std::vector<float> scaled = p.values;
  for (size_t i = 0; i < scaled.size(); ++i) {
    scaled[i] = static_cast<float>(scaled[i] * scales[i % static_cast<size_t>(p.cols)]);
  }
  const IntegerGroups groups =
      quantise_groups(scaled, p.rows, p.cols, Format::kInt4, group, GroupScheme::kAsymmetric).value();
  std::vector<float> back(static_cast<size_t>(p.cols));
  double error = 0;
  for (int64_t row = 0; row < p.rows; ++row) {
    dequantise_row(groups, row, back);
    for (size_t c = 0; c < back.size(); ++c) {
      const double e = back[c] / scales[c] - static_cast<double>(p.values[static_cast<size_t>(row * p.cols) + c]);
      error += e * e * static_cast<double>(p.square[c]);
    }
  }
  return error;
}

TEST(Awq, search_finds_the_best_of_its_grid) {
  Random random(1, "awq");
  for (int trial = 0; trial < 5; ++trial) {
    const Problem p = make_problem(random, 24, 200);
    const AwqMatrix matrix{p.values, p.rows};
    const ChannelScales found =
        search_channel_scales({&matrix, 1}, p.magnitude, p.square, Format::kInt4, 64).value();
    double least = INFINITY;
    for (int i = 0; i < kAwqGrid; ++i) {
      least = std::min(least, expected_error(p, static_cast<double>(i) / kAwqGrid, 64));
    }
    // f16 scales of groups make the search's own errors differ a little.
    EXPECT_LT(expected_error(p, found.alpha, 64), 1.02 * least);
    EXPECT_GT(found.alpha, 0);
    EXPECT_LT(found.error_after, 0.9 * found.error_before);
    EXPECT_NEAR(found.error_after / found.error_before,
                expected_error(p, found.alpha, 64) / expected_error(p, 0, 64), 0.02);
    float low = INFINITY, high = 0;
    for (size_t c = 0; c < p.magnitude.size(); ++c) {
      low = std::min(low, found.scales[c]);
      high = std::max(high, found.scales[c]);
      const double ratio = std::pow(static_cast<double>(p.magnitude[c]) / p.magnitude[0], found.alpha);
      EXPECT_NEAR(found.scales[c] / found.scales[0], ratio, 1e-3 * ratio);
    }
    EXPECT_NEAR(low * high, 1, 1e-3);
  }
}

TEST(Awq, equal_inputs_need_no_scales) {
  Random random(2, "equal");
  Problem p = make_problem(random, 16, 64);
  std::fill(p.magnitude.begin(), p.magnitude.end(), 0.5F);
  std::fill(p.square.begin(), p.square.end(), 0.5F);
  const AwqMatrix matrix{p.values, p.rows};
  const ChannelScales found =
      search_channel_scales({&matrix, 1}, p.magnitude, p.square, Format::kInt4, 32).value();
  for (const float scale : found.scales) EXPECT_FLOAT_EQ(scale, 1);
}

// (W diag(s)) (diag(1/s) U) = W U: the product of the scaled matrices is that of the originals.
TEST(Awq, scales_cancel_between_columns_and_rows) {
  Random random(3, "cancel");
  constexpr size_t kRows = 5, kInner = 33, kCols = 7;
  std::vector<float> w, u, scales;
  for (size_t i = 0; i < kRows * kInner; ++i) w.push_back(static_cast<float>(random.normal()));
  for (size_t i = 0; i < kInner * kCols; ++i) u.push_back(static_cast<float>(random.normal()));
  for (size_t i = 0; i < kInner; ++i) scales.push_back(static_cast<float>(std::exp(random.normal())));
  const auto product = [&](const std::vector<float>& a, const std::vector<float>& b, size_t r, size_t c,
                           double& magnitude) {
    double sum = 0;
    for (size_t k = 0; k < kInner; ++k) {
      const double term = static_cast<double>(a[r * kInner + k]) * static_cast<double>(b[k * kCols + c]);
      sum += term;
      magnitude += std::abs(term);
    }
    return sum;
  };
  std::vector<float> scaled_w = w, scaled_u = u;
  scale_columns(scaled_w, scales);
  divide_rows(scaled_u, scales);
  EXPECT_NE(scaled_w, w);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kCols; ++c) {
      double magnitude = 0;
      const double before = product(w, u, r, c, magnitude);
      EXPECT_NEAR(product(scaled_w, scaled_u, r, c, magnitude), before, magnitude * 0x1p-22);
    }
  }
}

TEST(Awq, statistics_that_make_no_sense_are_refused) {
  Random random(4, "refused");
  const Problem p = make_problem(random, 4, 32);
  const AwqMatrix matrix{p.values, p.rows};
  const auto search = [&](std::vector<float> magnitude, std::vector<float> square) {
    return search_channel_scales({&matrix, 1}, magnitude, square, Format::kInt4, 32).has_value();
  };
  EXPECT_TRUE(search(p.magnitude, p.square));
  EXPECT_TRUE(search(std::vector<float>(32), std::vector<float>(32)));  // inputs that are always zero
  EXPECT_FALSE(search(std::vector<float>(31), std::vector<float>(31)));
  EXPECT_FALSE(search(p.magnitude, std::vector<float>(31)));
  EXPECT_FALSE(search(std::vector<float>(32, NAN), p.square));
  EXPECT_FALSE(search(p.magnitude, std::vector<float>(32, -1.0F)));
}

}  // namespace
}  // namespace assay
