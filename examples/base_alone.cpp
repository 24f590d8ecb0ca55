// Times a sum over the thread pool, and reports it as assay reports every measurement: with its interval,
// unit and sample size.
#include <fmt/core.h>

#include <vector>

#include "base/build_info.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/stats.h"
#include "base/thread_pool.h"
#include "base/units.h"

int main() {
  constexpr int64_t kParts = 64;
  constexpr int64_t kPerPart = 1 << 14;
  constexpr int kSamples = 20;

  assay::Random random(1, "summands");
  std::vector<float> values(kParts * kPerPart);
  for (float& value : values) value = static_cast<float>(random.normal());

  assay::ThreadPool pool;
  std::vector<double> partial(kParts);
  std::vector<double> seconds;
  for (int sample = 0; sample < kSamples; ++sample) {
    const assay::Stopwatch watch;
    pool.parallel_for(kParts, [&](int64_t part) {
      double sum = 0;
      for (int64_t i = part * kPerPart; i < (part + 1) * kPerPart; ++i) sum += values[static_cast<size_t>(i)];
      partial[static_cast<size_t>(part)] =
          sum;  // in a place of its own: the result does not depend on the threads
    });
    seconds.push_back(watch.seconds());
  }
  double sum = 0;
  for (const double part : partial) sum += part;

  const assay::Interval interval = assay::mean_interval_95(seconds);
  fmt::print("assay {} base library\n", assay::build_info().version);
  fmt::print("sum of {} normals: {:.3f}\n", assay::format_bytes(values.size() * sizeof(float)), sum);
  fmt::print("on {} threads: median {}, mean between {} and {} (95 %, {} samples)\n", pool.size(),
             assay::format_seconds(assay::median(seconds)), assay::format_seconds(interval.low),
             assay::format_seconds(interval.high), kSamples);
  return 0;
}
