#include "telemetry/latency_window.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace assay {
namespace {

constexpr double kLowest = 1e-5;
constexpr double kGrowth = 1.04;

}  // namespace

LatencyWindow::LatencyWindow(int window_seconds, const Clock& clock)
    : clock_(clock), seconds_(static_cast<size_t>(window_seconds)) {
  CHECK(window_seconds > 0);
}

int LatencyWindow::bucket_of(double seconds) {
  if (!(seconds > kLowest)) return 0;
  const double bucket = std::log(seconds / kLowest) / std::log(kGrowth);
  return bucket < kBuckets ? static_cast<int>(bucket) : kBuckets - 1;
}

double LatencyWindow::middle_of(int bucket) {
  return kLowest * std::pow(kGrowth, bucket + 0.5);
}

bool LatencyWindow::is_current(const Second& second, int64_t now) const {
  return second.number >= 0 && second.number > now - std::ssize(seconds_) && second.number <= now;
}

void LatencyWindow::observe(double seconds) {
  const auto now = static_cast<int64_t>(clock_.now_seconds());
  const std::scoped_lock lock(mutex_);
  Second& current = seconds_[static_cast<size_t>(now % std::ssize(seconds_))];
  if (current.number != now) {
    current.number = now;
    current.counts.fill(0);
  }
  ++current.counts[static_cast<size_t>(bucket_of(seconds))];
}

std::optional<std::vector<double>> LatencyWindow::quantiles(std::span<const double> q) const {
  std::array<int64_t, kBuckets> sums{};
  int64_t total = 0;
  {
    const auto now = static_cast<int64_t>(clock_.now_seconds());
    const std::scoped_lock lock(mutex_);
    for (const Second& second : seconds_) {
      if (!is_current(second, now)) continue;
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += second.counts[i];
    }
  }
  for (const int64_t sum : sums) total += sum;
  if (total == 0) return std::nullopt;
  std::vector<double> values;
  for (const double wanted : q) {
    const int64_t rank = std::max<int64_t>(1, std::llround(std::ceil(wanted * static_cast<double>(total))));
    int64_t seen = 0;
    int bucket = -1;
    while (seen < rank && bucket + 1 < kBuckets) seen += sums[static_cast<size_t>(++bucket)];
    values.push_back(middle_of(bucket));
  }
  return values;
}

int64_t LatencyWindow::count() const {
  const auto now = static_cast<int64_t>(clock_.now_seconds());
  const std::scoped_lock lock(mutex_);
  int64_t total = 0;
  for (const Second& second : seconds_) {
    if (!is_current(second, now)) continue;
    for (const uint32_t count : second.counts) total += count;
  }
  return total;
}

}  // namespace assay
