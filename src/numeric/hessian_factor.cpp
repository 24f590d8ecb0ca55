#include "numeric/hessian_factor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay {
namespace {

constexpr size_t kLanes = 4;  // partial sums, so that dot products use registers

std::vector<int32_t> choose_order(std::span<const float> gram, int64_t n, ColumnOrder order, int64_t group) {
  std::vector<int32_t> columns(static_cast<size_t>(n));
  std::iota(columns.begin(), columns.end(), 0);
  if (order == ColumnOrder::kNatural) return columns;
  const auto diagonal = [&](int64_t i) { return static_cast<double>(gram[static_cast<size_t>(i * n + i)]); };
  std::vector<double> traces(static_cast<size_t>((n + group - 1) / group));
  for (int64_t i = 0; i < n; ++i) traces[static_cast<size_t>(i / group)] += diagonal(i);
  std::ranges::stable_sort(columns, [&](int32_t a, int32_t b) {
    const auto of_a = static_cast<size_t>(a / group), of_b = static_cast<size_t>(b / group);
    if (of_a != of_b) return traces[of_a] != traces[of_b] ? traces[of_a] > traces[of_b] : of_a < of_b;
    return diagonal(a) > diagonal(b);
  });
  return columns;
}

// H with rows and columns from the last position to the first, lower triangle, so that an ordinary Cholesky
// factor of it is R with its order reversed.
std::vector<double> reversed_hessian(std::span<const float> gram, std::span<const int32_t> order,
                                     double lambda) {
  const size_t n = order.size();
  std::vector<double> h(n * n);
  for (size_t i = 0; i < n; ++i) {
    const auto a = static_cast<size_t>(order[n - 1 - i]);
    for (size_t j = 0; j <= i; ++j) {
      const auto b = static_cast<size_t>(order[n - 1 - j]);
      h[i * n + j] = static_cast<double>(a > b ? gram[a * n + b] : gram[b * n + a]);
    }
    h[i * n + i] += lambda;
  }
  return h;
}

double dot(const double* a, const double* b, size_t n) {
  double sums[kLanes] = {};
  size_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[k + lane] * b[k + lane];
  }
  for (; k < n; ++k) sums[0] += a[k] * b[k];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Row-wise Cholesky in place: row i needs only the rows before it. False when a pivot is not positive.
bool factor_lower(std::vector<double>& h, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    double* row = h.data() + i * n;
    for (size_t j = 0; j < i; ++j) {
      const double* other = h.data() + j * n;
      row[j] = (row[j] - dot(row, other, j)) / other[j];
    }
    const double pivot = row[i] - dot(row, row, i);
    if (!(pivot > 0)) return false;
    row[i] = std::sqrt(pivot);
  }
  return true;
}

HessianFactor take_factor(const std::vector<double>& lower, std::vector<int32_t> order) {
  const size_t n = order.size();
  HessianFactor factor{.n = static_cast<int64_t>(n), .order = std::move(order), .ratios = {}, .pivots = {}};
  factor.ratios.resize(n * n);
  factor.pivots.resize(n);
  // R_ik of positions i <= k is lower[n - 1 - i][n - 1 - k].
  for (size_t k = 0; k < n; ++k) {
    const size_t column = n - 1 - k;
    const double pivot = lower[column * n + column];
    factor.pivots[k] = static_cast<float>(pivot * pivot);
    for (size_t i = 0; i < k; ++i) {
      factor.ratios[k * n + i] = static_cast<float>(lower[(n - 1 - i) * n + column] / pivot);
    }
  }
  return factor;
}

}  // namespace

Result<HessianFactor> factor_hessian(std::span<const float> gram, int64_t n, ColumnOrder order, int group,
                                     double damping) {
  if (n < 0 || gram.size() != static_cast<uint64_t>(n) * static_cast<uint64_t>(n) || group <= 0) {
    return fail(ErrorCode::kInvalidArgument, "hessian", "expected [{}, {}] values and a group, found {} and {}",
                n, n, gram.size(), group);
  }
  double trace = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double value = gram[static_cast<size_t>(i * n + i)];
    if (!(value >= 0)) {
      return fail(ErrorCode::kInvalidArgument, "hessian", "expected diagonals of at least 0, found {} at {}",
                  value, i);
    }
    trace += value;
  }
  if (!std::ranges::all_of(gram, [](float value) { return std::isfinite(value); })) {
    return fail(ErrorCode::kInvalidArgument, "hessian", "expected finite values");
  }
  const std::vector<int32_t> columns = choose_order(gram, n, order, group);
  const double mean = trace > 0 ? trace / static_cast<double>(n) : 1.0;
  for (double share = std::max(damping, 1e-8);; share = std::min(10 * share, 1.0)) {
    std::vector<double> h = reversed_hessian(gram, columns, share * mean);
    if (factor_lower(h, static_cast<size_t>(n))) return take_factor(h, columns);
    if (share >= 1) break;
  }
  return fail(ErrorCode::kInvalidArgument, "hessian", "is far from positive definite: no sum of squares");
}

}  // namespace assay
