#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace assay {
namespace {

constexpr auto kSpinTime = std::chrono::microseconds(100);
constexpr int kSpinsPerTimeCheck = 64;
constexpr int64_t kMostIndices = int64_t{1} << 31;  // that a share can count

thread_local bool inside_job = false;
thread_local const void* pinned_by = nullptr;  // the pool that put this thread on one CPU

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

uint64_t share_of(uint32_t first, uint32_t end) {
  return uint64_t{end} << 32 | first;
}
uint32_t first_of(uint64_t share) {
  return static_cast<uint32_t>(share);
}
uint32_t end_of(uint64_t share) {
  return static_cast<uint32_t>(share >> 32);
}

bool take_first(std::atomic<uint64_t>& share, uint32_t& place) {
  uint64_t seen = share.load(std::memory_order_relaxed);
  while (first_of(seen) < end_of(seen)) {
    if (share.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) {
      place = first_of(seen);
      return true;
    }
  }
  return false;
}

// Threads of all pools that work right now, callers included.
std::atomic<int> threads_at_work{0};

// Counts the caller and as many helpers as there are CPUs left, at most `wanted`; returns the helpers.
int begin_work(int wanted) {
  const int others = threads_at_work.fetch_add(1 + wanted, std::memory_order_relaxed);
  const int granted = std::clamp(available_cpus() - others - 1, 0, wanted);
  if (granted < wanted) threads_at_work.fetch_sub(wanted - granted, std::memory_order_relaxed);
  return granted;
}

void end_work(int helpers) {
  threads_at_work.fetch_sub(1 + helpers, std::memory_order_relaxed);
}

// The mask before any pool pinned a thread: threads made by a pinned one would inherit its single CPU.
const cpu_set_t& process_cpus() {
  static const cpu_set_t cpus = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof(set), &set) != 0) CPU_ZERO(&set);
    return set;
  }();
  return cpus;
}

void stay_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  CPU_SET(static_cast<size_t>(cpu), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);
}

void run_anywhere() {
  const cpu_set_t& all = process_cpus();
  if (CPU_COUNT(&all) > 0) ::pthread_setaffinity_np(::pthread_self(), sizeof(all), &all);
}

}  // namespace

int available_cpus() {
  static const int n_cpus = [] {
    if (const int count = CPU_COUNT(&process_cpus()); count > 0) return count;
    const unsigned count = std::thread::hardware_concurrency();
    return count > 0 ? static_cast<int>(count) : 1;
  }();
  return n_cpus;
}

std::vector<int> available_cpu_numbers() {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<size_t>(cpu), &process_cpus())) cpus.push_back(cpu);
  return cpus;
}

ThreadPool::ThreadPool(ThreadPoolOptions options)
    : pin_to_(std::move(options.pin_to)), may_exceed_cpus_(options.may_exceed_cpus) {
  const int cpus = available_cpus();
  const int n_threads = options.n_threads > 0 ? options.n_threads : cpus;
  seats_ = std::make_unique<Seat[]>(static_cast<size_t>(n_threads));
  workers_.reserve(static_cast<size_t>(n_threads - 1));
  const bool made_by_pinned_thread = pinned_by != nullptr;
  try {
    for (int i = 1; i < n_threads; ++i) {
      workers_.emplace_back([this, i, made_by_pinned_thread] {
        if (!pin_to_.empty()) {
          stay_on(pin_to_[static_cast<size_t>(i) % pin_to_.size()]);
        } else if (made_by_pinned_thread) {
          run_anywhere();
        }
        work(i);
      });
    }
  } catch (const std::system_error&) {
    // The system grants no more threads: the pool works with those it has, and size() says how many.
  }
}

ThreadPool::~ThreadPool() {
  for (int i = 1; i < size(); ++i) {
    seats_[static_cast<size_t>(i)].state.store(State::kStop);
    seats_[static_cast<size_t>(i)].state.notify_one();
  }
  for (std::thread& worker : workers_) worker.join();
  if (pinned_by == this) {
    run_anywhere();
    pinned_by = nullptr;
  }
}

void ThreadPool::pin_caller() {
  stay_on(pin_to_[0]);
  pinned_by = this;
}

void ThreadPool::run(int64_t n, Call call, void* context) {
  if (n <= 0) return;
  CHECK_OP(n, <=, kMostIndices);
  const int wanted = static_cast<int>(std::min<int64_t>(n, size())) - 1;
  const bool alone = wanted == 0 || inside_job;
  if (!pin_to_.empty() && !inside_job && pinned_by != this) pin_caller();
  const bool counted = !alone && !may_exceed_cpus_;
  const int helpers = alone ? 0 : counted ? begin_work(wanted) : wanted;
  if (helpers == 0) {
    for (int64_t i = 0; i < n; ++i) call(context, i);
  } else {
    forks_.fetch_add(1, std::memory_order_relaxed);
    run_shared(static_cast<uint32_t>(n), helpers + 1, call, context);
  }
  if (counted) end_work(helpers);
}

void ThreadPool::run_shared(uint32_t n, int n_seats, Call call, void* context) {
  // Every share is written before anyone is called: whoever comes in may steal from all.
  for (int i = 0; i < n_seats; ++i) {
    const auto part = [&](int seat) {
      return static_cast<uint32_t>(uint64_t{n} * static_cast<uint64_t>(seat) /
                                   static_cast<uint64_t>(n_seats));
    };
    Seat& seat = seats_[static_cast<size_t>(i)];
    seat.call = call;
    seat.context = context;
    seat.n_seats = n_seats;
    seat.share.store(share_of(part(i), part(i + 1)), std::memory_order_relaxed);
  }
  for (int i = 1; i < n_seats; ++i) {
    std::atomic<State>& state = seats_[static_cast<size_t>(i)].state;
    if (state.exchange(State::kCalled, std::memory_order_acq_rel) == State::kParked) state.notify_one();
  }
  inside_job = true;
  run_shares(seats_[0]);
  inside_job = false;

  // Nothing is left to take. Who has not come in yet is called off; who is inside finishes.
  for (int i = 1; i < n_seats; ++i) {
    std::atomic<State>& state = seats_[static_cast<size_t>(i)].state;
    State seen = State::kCalled;
    if (state.compare_exchange_strong(seen, State::kIdle, std::memory_order_acq_rel)) continue;
    const auto is_done = [&] {
      const State now = state.load(std::memory_order_acquire);
      return now == State::kIdle || now == State::kParked;  // it may have gone to sleep since
    };
    if (spin_until(is_done)) continue;
    seen = State::kInside;
    if (state.compare_exchange_strong(seen, State::kAwaited, std::memory_order_acq_rel))
      while (!is_done()) state.wait(State::kAwaited, std::memory_order_acquire);
  }
}

void ThreadPool::run_shares(Seat& own) {
  do {
    for (uint32_t place; take_first(own.share, place);) own.call(own.context, place);
  } while (steal(own));
}

// Moves half of the indices left in another seat, rounded up, to `own`; false when none are left anywhere.
// A share's value cannot come back within a job (its first index is gone), so comparing values suffices.
bool ThreadPool::steal(Seat& own) {
  const auto own_index = static_cast<int>(&own - seats_.get());
  for (int step = 1; step < own.n_seats; ++step) {
    std::atomic<uint64_t>& share = seats_[static_cast<size_t>((own_index + step) % own.n_seats)].share;
    uint64_t seen = share.load(std::memory_order_relaxed);
    while (first_of(seen) < end_of(seen)) {
      const uint32_t middle = first_of(seen) + (end_of(seen) - first_of(seen)) / 2;
      if (share.compare_exchange_weak(seen, share_of(first_of(seen), middle), std::memory_order_relaxed)) {
        own.share.store(share_of(middle, end_of(seen)), std::memory_order_relaxed);
        return true;
      }
    }
  }
  return false;
}

void ThreadPool::work(int index) {
  inside_job = true;
  Seat& seat = seats_[static_cast<size_t>(index)];
  for (;;) {
    if (!spin_until([&] { return seat.state.load(std::memory_order_acquire) != State::kIdle; })) {
      State seen = State::kIdle;
      if (seat.state.compare_exchange_strong(seen, State::kParked, std::memory_order_acq_rel))
        seat.state.wait(State::kParked, std::memory_order_acquire);
    }
    State seen = State::kCalled;
    if (!seat.state.compare_exchange_strong(seen, State::kInside, std::memory_order_acq_rel)) {
      if (seen == State::kStop) return;
      continue;  // called off: spin again
    }
    run_shares(seat);
    if (seat.state.exchange(State::kIdle, std::memory_order_acq_rel) == State::kAwaited)
      seat.state.notify_one();
  }
}

}  // namespace assay
