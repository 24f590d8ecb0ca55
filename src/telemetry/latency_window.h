// Quantiles of the latencies of the last seconds, in fixed memory: one histogram a second over buckets that
// grow by 4 %, so that a quantile is off by at most 2 % (10 us to 1,000 s; what lies outside counts as the
// nearest end). Ranks as Hyndman and Fan's type 1: the smallest value that q of all do not exceed.
// Thread safety: any thread. Failure: none. Cost: observe() is a logarithm and a short lock; quantiles()
// adds up the window's counts (470 buckets a second); 2 KB a second of the window.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"

namespace assay {

class LatencyWindow {
 public:
  // Seconds are those of `clock`, which must outlive the window.
  LatencyWindow(int window_seconds, const Clock& clock);

  void observe(double seconds);
  // One value for each q in [0, 1], in seconds; none when nothing was observed in the window.
  std::optional<std::vector<double>> quantiles(std::span<const double> q) const;
  int64_t count() const;  // in the window

 private:
  static constexpr int kBuckets = 471;
  struct Second {
    int64_t number = -1;  // since the clock's origin; -1: never used
    std::array<uint32_t, kBuckets> counts{};
  };

  static int bucket_of(double seconds);
  static double middle_of(int bucket);
  bool is_current(const Second& second, int64_t now) const;

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<Second> seconds_;  // [window_seconds], by number modulo the window
};

}  // namespace assay
