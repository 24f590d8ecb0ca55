#include "base/stats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"

namespace assay {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Student's t, 97.5 % point, by degrees of freedom 1..30 (any statistics table); beyond, the expansion in 1/n
// of Abramowitz and Stegun, 26.7.5, to its second term: within 1e-4.
double student_t_975(size_t degrees) {
  constexpr std::array<double, 30> table = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                            2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                            2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                            2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees <= table.size()) return table[degrees - 1];
  constexpr double z = 1.959964;
  constexpr double z3 = z * z * z;
  const auto n = static_cast<double>(degrees);
  return z + (z3 + z) / (4 * n) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * n * n);
}

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return kNaN;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  if (values.empty()) return kNaN;
  if (values.size() < 2) return 0;
  const double center = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - center) * (value - center);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double quantile(std::span<const double> values, double q) {
  if (values.empty()) return kNaN;
  CHECK(q >= 0 && q <= 1);
  if (std::ranges::any_of(values, [](double value) { return std::isnan(value); })) return kNaN;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const double fraction = position - static_cast<double>(below);
  // Decided here, because std::lerp promises nothing about infinities: lerp(1, inf, 0) is inf in libstdc++.
  if (fraction == 0 || sorted[below] == sorted[below + 1]) return sorted[below];
  return std::lerp(sorted[below], sorted[below + 1], fraction);
}

double median(std::span<const double> values) {
  return quantile(values, 0.5);
}

Interval mean_interval_95(std::span<const double> values) {
  if (values.size() < 2) return {kNaN, kNaN};
  const double center = mean(values);
  const double half = student_t_975(values.size() - 1) * standard_deviation(values) /
                      std::sqrt(static_cast<double>(values.size()));
  return {center - half, center + half};
}

Interval wilson_interval_95(long successes, long trials) {
  if (trials <= 0) return {kNaN, kNaN};
  constexpr double z = 1.959964;
  const double n = static_cast<double>(trials);
  const double p = static_cast<double>(successes) / n;
  const double denominator = 1 + z * z / n;
  const double center = (p + z * z / (2 * n)) / denominator;
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / denominator;
  return {std::max(0.0, center - half), std::min(1.0, center + half)};
}

Line fit_line(std::span<const double> x, std::span<const double> y) {
  CHECK(x.size() == y.size());
  const double mean_x = mean(x);
  const double mean_y = mean(y);
  double sxx = 0, sxy = 0, syy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sxx += (x[i] - mean_x) * (x[i] - mean_x);
    sxy += (x[i] - mean_x) * (y[i] - mean_y);
    syy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  if (!(sxx > 0)) return {kNaN, kNaN, kNaN};
  const double slope = sxy / sxx;
  return {mean_y - slope * mean_x, slope, syy > 0 ? sxy * sxy / (sxx * syy) : 1.0};
}

}  // namespace assay
