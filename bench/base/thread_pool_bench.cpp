// What a fork and join of the thread pool costs, by number of threads: median and 99th percentile of single
// calls. "empty": a body that does nothing, one index a thread; the caller may do it all before a worker
// arrives. "shared": a body of a few microseconds on every thread, less the same body called directly, so that
// workers must take part. "parked": as shared, after the workers have gone to sleep. "uneven": 256 indices of
// which the first half takes three times as long, as a share of perfect balance.
//   thread_pool_bench [--json]
#include "base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "bench/figures.h"

namespace {

using namespace assay;
using namespace assay::bench;
using Clock = std::chrono::steady_clock;

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Not inlined: the same loop takes half as long at another alignment.
[[gnu::noinline]] void spend(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) asm volatile("" ::: "memory");
}

struct Times {
  std::vector<double> nanoseconds;
  double at(double share) {
    const auto index = static_cast<size_t>(share * static_cast<double>(nanoseconds.size() - 1));
    std::ranges::nth_element(nanoseconds, nanoseconds.begin() + static_cast<std::ptrdiff_t>(index));
    return nanoseconds[index];
  }
};

template <class Body>
Times time_calls(int n, Body&& body) {
  Times times;
  for (int i = 0; i < n; ++i) {
    const auto start = Clock::now();
    body();
    times.nanoseconds.push_back(nanoseconds_since(start));
  }
  return times;
}

void add(std::vector<Figure>& figures, const std::string& name, Times times, double less, const char* how,
         std::optional<double> bound) {
  const int n = static_cast<int>(times.nanoseconds.size());
  figures.push_back({name + ", median", (times.at(0.5) - less) / 1000, "us", bound, Better::kLower, n, how});
  figures.push_back({name + ", 99 %", (times.at(0.99) - less) / 1000, "us", {}, Better::kLower, n, how});
}

void measure(int n_threads, std::vector<Figure>& figures) {
  constexpr int64_t kSteps = 10000;  // 3 to 5 us
  constexpr int kCalls = 20000;
  const double alone = time_calls(2000, [] { spend(kSteps); }).at(0.5);
  ThreadPool pool(n_threads);
  const std::string threads = fmt::format("{} thread{}", n_threads, n_threads == 1 ? "" : "s");
  const auto bound = n_threads <= 2 ? std::optional(2.0) : std::nullopt;
  const auto shared = [&] { pool.parallel_for(n_threads, [](int64_t) { spend(kSteps); }); };
  for (int i = 0; i < 1000; ++i) shared();
  add(figures, "fork and join, empty, " + threads,
      time_calls(kCalls, [&] { pool.parallel_for(n_threads, [](int64_t) {}); }), 0, "single calls", bound);
  add(figures, "fork and join, shared, " + threads, time_calls(kCalls, shared), alone,
      "single calls less the body alone", bound);
  Times parked;
  for (int i = 0; i < 300; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto start = Clock::now();
    shared();
    parked.nanoseconds.push_back(nanoseconds_since(start));
  }
  add(figures, "fork and join, parked, " + threads, std::move(parked), alone,
      "single calls 2 ms apart less the body alone", {});
  constexpr int64_t kUneven = 256, kUnit = 500;
  const auto uneven = [](int64_t i) { spend(i < kUneven / 2 ? 3 * kUnit : kUnit); };
  const double serial = time_calls(200, [&] { for (int64_t i = 0; i < kUneven; ++i) uneven(i); }).at(0.5);
  const double split = time_calls(500, [&] { pool.parallel_for(kUneven, uneven); }).at(0.5);
  figures.push_back({"balance of 256 uneven indices, " + threads, 100 * serial / n_threads / split, "%", {},
                     Better::kHigher, 500, "serial time / threads / parallel time, medians"});
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Figure> figures;
  for (int n = 1; n <= available_cpus(); ++n) measure(n, figures);
  return print(figures, wants_json(argc, argv));
}
