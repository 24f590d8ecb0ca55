#include "base/thread_pool.h"

#include <sched.h>

#include <chrono>
#include <system_error>

#include "base/check.h"

namespace assay {
namespace {

constexpr auto kSpinTime = std::chrono::microseconds(100);
constexpr int kSpinsPerTimeCheck = 64;

thread_local bool inside_job = false;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `done()` or the spin time is over; says whether it is done.
template <class Done>
bool spin_until(Done&& done) {
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kSpinsPerTimeCheck; ++i) {
      if (done()) return true;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

}  // namespace

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    if (const int count = CPU_COUNT(&set); count > 0) return count;
  }
  const unsigned count = std::thread::hardware_concurrency();
  return count > 0 ? static_cast<int>(count) : 1;
}

ThreadPool::ThreadPool(int n_threads) {
  if (n_threads <= 0) n_threads = available_cpus();
  workers_.reserve(static_cast<size_t>(n_threads - 1));
  try {
    for (int i = 1; i < n_threads; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The system grants no more threads: the pool works with those it has, and size() says how many.
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int64_t n, Call call, void* context) {
  if (n <= 0) return;
  if (n == 1 || workers_.empty() || inside_job) {
    for (int64_t i = 0; i < n; ++i) call(context, i);
    return;
  }
  call_ = call;
  context_ = context;
  n_ = n;
  next_.store(0, std::memory_order_relaxed);
  entry_.store(kOpen, std::memory_order_release);
  generation_.fetch_add(1);  // sequentially consistent: ordered with the parked_ check below
  if (parked_.load() > 0) generation_.notify_all();

  inside_job = true;
  for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < n;) call(context, i);
  inside_job = false;

  // Workers that are still inside finish their last index; those that come later find the door closed, so
  // that a worker the system has not scheduled yet keeps nobody waiting.
  entry_.fetch_and(~kOpen, std::memory_order_acq_rel);
  while (!spin_until([this] { return entry_.load(std::memory_order_acquire) == 0; })) {
    const uint32_t inside = entry_.load(std::memory_order_acquire);
    if (inside != 0) entry_.wait(inside, std::memory_order_acquire);
  }
}

bool ThreadPool::enter() {
  uint32_t entry = entry_.load(std::memory_order_relaxed);
  while ((entry & kOpen) != 0) {
    if (entry_.compare_exchange_weak(entry, entry + 1, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  }
  return false;
}

void ThreadPool::work() {
  inside_job = true;
  uint32_t seen = 0;
  for (;;) {
    const auto changed = [&] { return generation_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(changed)) {
      parked_.fetch_add(1);
      while (!changed()) generation_.wait(seen);
      parked_.fetch_sub(1);
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    if (!enter()) continue;
    for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < n_;) call_(context_, i);
    if (entry_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      entry_.notify_all();  // the last one, behind a closed door
  }
}

}  // namespace assay
