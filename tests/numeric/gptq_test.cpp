// GPTQ against direct least squares: after every rounded column the remaining errors are solved for from the
// normal equations by elimination, with no triangular factor and no recursion.
#include "numeric/gptq.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "numeric/group_fit.h"

namespace assay {
namespace {

// Correlated inputs: gram [n, n] of n_samples rows.
std::vector<float> random_gram(Random& random, int64_t n, int64_t n_samples) {
  const auto size = static_cast<size_t>(n);
  std::vector<double> mix(size * size), gram(size * size), x(size), z(size);
  for (double& m : mix) m = random.normal() * std::exp(random.normal());
  for (int64_t s = 0; s < n_samples; ++s) {
    for (double& v : z) v = random.normal();
    for (size_t i = 0; i < size; ++i) {
      x[i] = 0;
      for (size_t j = 0; j < size; ++j) x[i] += (i == j ? 3 : 0.4) * mix[i * size + j] * z[j];
    }
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) gram[i * size + j] += x[i] * x[j];
    }
  }
  return {gram.begin(), gram.end()};
}

std::vector<float> normals(Random& random, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

// a x = b by Gaussian elimination with pivoting; a: [n, n].
std::vector<double> solve(std::vector<double> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    for (size_t j = 0; j < n; ++j) std::swap(a[k * n + j], a[pivot * n + j]);
    std::swap(b[k], b[pivot]);
    for (size_t i = k + 1; i < n; ++i) {
      const double f = a[i * n + k] / a[k * n + k];
      for (size_t j = k; j < n; ++j) a[i * n + j] -= f * a[k * n + j];
      b[i] -= f * b[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) b[k] -= a[k * n + j] * b[j];
    b[k] /= a[k * n + k];
  }
  return b;
}

// The errors of columns order[k..] that minimise e H e^T when those of order[..k) are fixed.
std::vector<double> best_rest(const std::vector<double>& h, std::span<const int32_t> order, size_t k,
                              std::span<const double> error) {
  const size_t n = order.size(), rest = n - k;
  std::vector<double> a(rest * rest), b(rest);
  for (size_t i = 0; i < rest; ++i) {
    const auto row = static_cast<size_t>(order[k + i]);
    for (size_t j = 0; j < rest; ++j) a[i * rest + j] = h[row * n + static_cast<size_t>(order[k + j])];
    for (size_t j = 0; j < k; ++j) {
      b[i] -= h[row * n + static_cast<size_t>(order[j])] * error[static_cast<size_t>(order[j])];
    }
  }
  return solve(std::move(a), std::move(b));
}

std::vector<double> damped(std::span<const float> gram, int64_t n, double damping) {
  std::vector<double> h(gram.begin(), gram.end());
  double trace = 0;
  for (int64_t i = 0; i < n; ++i) trace += h[static_cast<size_t>(i * n + i)];
  for (int64_t i = 0; i < n; ++i) h[static_cast<size_t>(i * n + i)] += damping * trace / static_cast<double>(n);
  return h;
}

TEST(HessianFactor, is_a_triangular_square_root_in_its_order) {
  Random random(1, "factor");
  for (const int64_t n : {1, 2, 7, 40, 100}) {
    for (const ColumnOrder order : {ColumnOrder::kNatural, ColumnOrder::kByGroup}) {
      const std::vector<float> gram = random_gram(random, n, 3 * n);
      const HessianFactor f = factor_hessian(gram, n, order, 16, 0.01).value();
      const std::vector<double> h = damped(gram, n, 0.01);
      // R_ik = ratio[k][i] * sqrt(pivot[k]); row i, column j of R R^T is a sum over k >= max(i, j).
      const auto r = [&](size_t i, size_t k) {
        const double root = std::sqrt(static_cast<double>(f.pivots[k]));
        return i == k ? root : static_cast<double>(f.ratios[k * static_cast<size_t>(n) + i]) * root;
      };
      const auto size = static_cast<size_t>(n);
      double largest = 0;
      for (size_t i = 0; i < size; ++i) largest = std::max(largest, h[i * size + i]);
      for (size_t i = 0; i < size; ++i) {
        for (size_t j = 0; j <= i; ++j) {
          double sum = 0;
          for (size_t k = i; k < size; ++k) sum += r(i, k) * r(j, k);
          const double expected =
              h[static_cast<size_t>(f.order[i]) * size + static_cast<size_t>(f.order[j])];
          ASSERT_NEAR(sum, expected, 1e-6 * largest * static_cast<double>(n));  // kept as f32
        }
      }
    }
  }
}

TEST(HessianFactor, order_keeps_groups_and_puts_large_diagonals_first) {
  constexpr int64_t kSize = 40;
  std::vector<float> gram(kSize * kSize);
  for (size_t i = 0; i < kSize; ++i) gram[i * kSize + i] = i == 35 ? 100.0F : i == 3 ? 50.0F : 1.0F;
  const HessianFactor f = factor_hessian(gram, kSize, ColumnOrder::kByGroup, 16).value();
  EXPECT_EQ(f.order[0], 35);  // of the short last group
  EXPECT_EQ(f.order[8], 3);
  for (size_t k = 0; k < kSize; ++k) {
    EXPECT_EQ(f.order[k] / 16, k < 8 ? 2 : k < 24 ? 0 : 1);
  }
}

TEST(HessianFactor, bad_input_is_refused_and_singular_input_damped) {
  EXPECT_FALSE(factor_hessian(std::vector<float>(3), 2, ColumnOrder::kNatural, 16).has_value());
  EXPECT_FALSE(factor_hessian(std::vector<float>{NAN}, 1, ColumnOrder::kNatural, 16).has_value());
  EXPECT_FALSE(factor_hessian(std::vector<float>{-1}, 1, ColumnOrder::kNatural, 16).has_value());
  EXPECT_FALSE(factor_hessian(std::vector<float>{1, 9, 9, 1}, 2, ColumnOrder::kNatural, 16).has_value());
  EXPECT_TRUE(factor_hessian(std::vector<float>(16), 4, ColumnOrder::kNatural, 16).has_value());
  EXPECT_TRUE(factor_hessian(std::vector<float>(16, 1.0F), 4, ColumnOrder::kNatural, 16).has_value());
  EXPECT_TRUE(factor_hessian({}, 0, ColumnOrder::kNatural, 16).has_value());
}

// Every code is the nearest to what least squares says the column should be, given the codes before it. A target
// within 1e-3 of a step from a boundary may go either way.
void check_against_least_squares(const HessianFactor& f, const std::vector<double>& h,
                                 std::span<const float> weights, std::span<const float> values,
                                 std::span<const float> steps) {
  const auto n = static_cast<size_t>(f.n);
  std::vector<double> error(n);
  for (size_t k = 0; k < n; ++k) {
    const auto column = static_cast<size_t>(f.order[k]);
    const double target = static_cast<double>(weights[column]) + best_rest(h, f.order, k, error)[0];
    error[column] = static_cast<double>(values[column]) - static_cast<double>(weights[column]);
    if (steps[column] < 0) continue;  // dropped
    const auto step = static_cast<double>(steps[column]);
    ASSERT_LE(std::abs(static_cast<double>(values[column]) - target), step * 0.501)
        << "position " << k << " target " << target << " value " << values[column];
  }
}

TEST(Gptq, codes_are_those_of_direct_least_squares) {
  Random random(2, "gptq");
  for (const int64_t n : {5, 16, 40, 64}) {
    for (const ColumnOrder order : {ColumnOrder::kNatural, ColumnOrder::kByGroup}) {
      const int64_t rows = random.between(1, 20);
      const std::vector<float> gram = random_gram(random, n, 2 * n);
      const std::vector<float> weights = normals(random, rows * n);
      const HessianFactor f = factor_hessian(gram, n, order, 16, 0.01).value();
      const IntegerGroups groups = quantise_gptq(weights, rows, Format::kInt8, 16, f).value();
      std::vector<float> back(static_cast<size_t>(n)), steps(static_cast<size_t>(n));
      int clamped = 0;
      for (int64_t row = 0; row < rows; ++row) {
        dequantise_row(groups, row, back);
        for (int64_t c = 0; c < n; ++c) {
          const auto at = static_cast<size_t>(row * groups.groups_per_row() + c / 16);
          const uint8_t code = groups.codes[static_cast<size_t>(row * n + c)];
          const bool at_end = code == 0 || code == 255;  // clamped: may be further away
          clamped += at_end;
          steps[static_cast<size_t>(c)] = at_end ? -1 : groups.scales[at];
        }
        const auto first = static_cast<size_t>(row * n);
        ASSERT_NO_FATAL_FAILURE(check_against_least_squares(
            f, damped(gram, n, 0.01), std::span(weights).subspan(first, static_cast<size_t>(n)), back, steps));
      }
      EXPECT_LT(clamped, rows * n / 4);
    }
  }
}

TEST(Gptq, dropped_blocks_are_made_up_for_as_least_squares_says) {
  Random random(3, "sparse");
  constexpr int64_t kSize = 128, kRows = 20;
  const std::vector<float> gram = random_gram(random, kSize, 2 * kSize);
  const std::vector<float> weights = normals(random, kRows * kSize);
  const BlockMask mask{.rows = kRows, .cols = kSize, .kept = {1, 0, 1, 1, 0, 1, 0, 1}};
  const HessianFactor f = factor_hessian(gram, kSize, ColumnOrder::kNatural, 32).value();
  const std::vector<double> h = damped(gram, kSize, 0.01);
  for (const int group : {32, 64}) {
    const SparseGroups sparse = quantise_gptq_sparse(weights, mask, group, f).value();
    std::vector<float> back(kSize), steps(kSize);
    for (const int64_t row : {0, 7, 15, 16, 19}) {
      dequantise_row(sparse, row, back);
      int64_t rank = 0;
      for (int64_t block = 0; block < 4; ++block) {
        const bool kept = mask.keeps(row / 16, block);
        for (int64_t c = block * 32; c < block * 32 + 32; ++c) {
          const auto at = static_cast<size_t>(row * sparse.groups.groups_per_row() + rank * 32 / group);
          const uint8_t code = sparse.groups.codes[static_cast<size_t>(row * kSize + c)];
          if (!kept) {
            ASSERT_EQ(back[static_cast<size_t>(c)], 0);
          }
          steps[static_cast<size_t>(c)] = kept && code > 0 && code < 15 ? sparse.groups.scales[at] : -1;
        }
        rank += kept;
      }
      ASSERT_NO_FATAL_FAILURE(check_against_least_squares(
          f, h, std::span(weights).subspan(static_cast<size_t>(row * kSize), kSize), back, steps));
    }
  }
}

TEST(Gptq, a_mask_that_keeps_all_changes_nothing) {
  Random random(4, "all");
  constexpr int64_t kSize = 96, kRows = 17;
  const std::vector<float> weights = normals(random, kRows * kSize);
  const HessianFactor f =
      factor_hessian(random_gram(random, kSize, 200), kSize, ColumnOrder::kNatural, 32).value();
  const BlockMask mask{.rows = kRows, .cols = kSize, .kept = std::vector<uint8_t>(2 * 3, 1)};
  const IntegerGroups dense = quantise_gptq(weights, kRows, Format::kInt4, 32, f).value();
  const SparseGroups sparse = quantise_gptq_sparse(weights, mask, 32, f).value();
  EXPECT_EQ(dense.codes, sparse.groups.codes);
  EXPECT_EQ(dense.scales, sparse.groups.scales);
  EXPECT_EQ(dense.minimums, sparse.groups.minimums);
}

// On the inputs it was given, GPTQ loses less than rounding to nearest, dense and sparse; and the loss of
// outputs agrees with multiplying them out.
TEST(Gptq, loses_less_of_the_outputs_than_nearest_codes) {
  Random random(5, "loss");
  constexpr int64_t kSize = 128, kRows = 32;
  const std::vector<float> gram = random_gram(random, kSize, 300);
  const std::vector<float> weights = normals(random, kRows * kSize);
  const auto dense_loss = [&](const IntegerGroups& groups) {
    std::vector<float> back(weights.size());
    for (int64_t row = 0; row < kRows; ++row) {
      dequantise_row(groups, row, std::span(back).subspan(static_cast<size_t>(row * kSize), kSize));
    }
    return relative_output_error(weights, back, kRows, gram);
  };
  const auto sparse_loss = [&](const SparseGroups& groups) {
    std::vector<float> back(weights.size());
    for (int64_t row = 0; row < kRows; ++row) {
      dequantise_row(groups, row, std::span(back).subspan(static_cast<size_t>(row * kSize), kSize));
    }
    return relative_output_error(weights, back, kRows, gram);
  };
  const double plain = dense_loss(
      quantise_groups(weights, kRows, kSize, Format::kInt4, 64, GroupScheme::kAsymmetric).value());
  const HessianFactor natural = factor_hessian(gram, kSize, ColumnOrder::kNatural, 64).value();
  const HessianFactor ordered = factor_hessian(gram, kSize, ColumnOrder::kByGroup, 64).value();
  EXPECT_LT(dense_loss(quantise_gptq(weights, kRows, Format::kInt4, 64, natural).value()), 0.6 * plain);
  EXPECT_LT(dense_loss(quantise_gptq(weights, kRows, Format::kInt4, 64, ordered).value()), 0.6 * plain);

  const BlockMask mask = prune_blockwise(weights, kRows, kSize, {}).value();
  const double dropped = sparse_loss(quantise_sparse(weights, mask, 64, true, {}).value());
  EXPECT_LT(sparse_loss(quantise_gptq_sparse(weights, mask, 64, natural).value()), 0.8 * dropped);
}

TEST(Gptq, output_error_is_that_of_the_products) {
  Random random(6, "products");
  constexpr size_t kSize = 9, kRows = 4, kSamples = 30;
  std::vector<float> x = normals(random, kSize * kSamples), gram(kSize * kSize);
  for (size_t i = 0; i < kSize; ++i) {
    for (size_t j = 0; j < kSize; ++j) {
      double sum = 0;
      for (size_t s = 0; s < kSamples; ++s) sum += static_cast<double>(x[s * kSize + i]) * x[s * kSize + j];
      gram[i * kSize + j] = static_cast<float>(sum);
    }
  }
  const std::vector<float> a = normals(random, kRows * kSize), b = normals(random, kRows * kSize);
  double error = 0, signal = 0;
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t s = 0; s < kSamples; ++s) {
      double y = 0, z = 0;
      for (size_t c = 0; c < kSize; ++c) {
        y += static_cast<double>(a[r * kSize + c]) * x[s * kSize + c];
        z += static_cast<double>(b[r * kSize + c]) * x[s * kSize + c];
      }
      error += (y - z) * (y - z);
      signal += y * y;
    }
  }
  EXPECT_NEAR(relative_output_error(a, b, kRows, gram), error / signal, 1e-4 * error / signal);
  EXPECT_EQ(relative_output_error(a, a, kRows, gram), 0);
}

TEST(Gptq, input_that_does_not_fit_is_refused) {
  Random random(7, "refused");
  const HessianFactor f = factor_hessian(random_gram(random, 64, 100), 64, ColumnOrder::kByGroup, 16).value();
  const std::vector<float> weights = normals(random, 64);
  EXPECT_TRUE(quantise_gptq(weights, 1, Format::kInt4, 16, f).has_value());
  EXPECT_FALSE(quantise_gptq(weights, 2, Format::kInt4, 16, f).has_value());
  EXPECT_FALSE(quantise_gptq(weights, 1, Format::kBF16, 16, f).has_value());
  EXPECT_FALSE(quantise_gptq(std::vector<float>(64, INFINITY), 1, Format::kInt4, 16, f).has_value());
  HessianFactor mixed = f;
  std::swap(mixed.order[0], mixed.order[40]);
  EXPECT_FALSE(quantise_gptq(weights, 1, Format::kInt4, 16, mixed).has_value());
  const BlockMask mask{.rows = 1, .cols = 64, .kept = {1, 0}};
  EXPECT_FALSE(quantise_gptq_sparse(weights, mask, 32, mixed).has_value());
  EXPECT_TRUE(quantise_gptq({}, 0, Format::kInt4, 16, f).has_value());
}

}  // namespace
}  // namespace assay
