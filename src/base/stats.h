// Small-sample statistics. All functions are pure; an empty input gives NaN unless said otherwise.
#pragma once

#include <span>

namespace assay {

double mean(std::span<const double> values);
// Sample standard deviation (n - 1); 0 for fewer than two values.
double standard_deviation(std::span<const double> values);
// Quantile q in [0, 1] with linear interpolation between order statistics (Hyndman and Fan, type 7).
// Copies and sorts: O(n log n). NaN among the values gives NaN; infinities are ordinary (a request that never
// ended).
double quantile(std::span<const double> values, double q);
double median(std::span<const double> values);

struct Interval {
  double low;
  double high;
};

// 95 % interval of the mean: mean +- t(0.975, n-1) * s / sqrt(n).
Interval mean_interval_95(std::span<const double> values);
// 95 % Wilson score interval of a proportion (Wilson, 1927).
Interval wilson_interval_95(long successes, long trials);

struct Line {
  double intercept;
  double slope;
  double r_squared;
};

// Ordinary least squares of y on x. Needs two distinct x values, otherwise NaN.
Line fit_line(std::span<const double> x, std::span<const double> y);

}  // namespace assay
