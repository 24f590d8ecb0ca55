// A fork-join pool for loops that take microseconds. parallel_for(n, body) runs body(i) for i in [0, n) on
// all threads, the caller's included, and returns when every i is done. Each thread starts with a contiguous
// share of the indices and takes half of another's rest when its own is done, so which thread runs which index
// is not fixed: bodies must write to places that depend on the index alone.
//
// Waiting threads spin for 100 us, then park; a parked pool costs nothing. A worker that the system has not
// scheduled keeps nobody waiting: its share is taken by the others.
//
// Never more threads than CPUs: however many pools a process has, and however many threads each was made with,
// a call is joined by workers only as long as the threads at work in all pools, callers included, are no more
// than available_cpus(). A call that finds every CPU at work for another pool runs on its own thread alone.
// (A worker that still spins after its last job, at most 100 us, is not counted.)
//
// Thread safety: one caller at a time (the pool belongs to one engine). Nested calls run serially on the
// calling thread. Bodies must not throw; n is at most 2^31 (CHECKed). Cost: bench/base/thread_pool_bench.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace assay {

struct ThreadPoolOptions {
  int n_threads = 0;  // counting the caller; 0: available_cpus()
  // CPU of each thread, the caller's first (see cpus_by_core() in hardware/topology.h); reused from the start
  // when there are more threads. Empty: the system places them. A thread that calls parallel_for stays on its
  // CPU until the pool is destroyed on that thread. A CPU that the system refuses is ignored.
  std::vector<int> pin_to;
  bool may_exceed_cpus = false;  // for tests: all threads at once even where there are fewer CPUs
};

class ThreadPool {
 public:
  // Where the system refuses threads the pool is smaller; size() says how large.
  explicit ThreadPool(ThreadPoolOptions options);
  explicit ThreadPool(int n_threads = 0) : ThreadPool(ThreadPoolOptions{.n_threads = n_threads}) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }
  // How many calls were shared with other threads so far; may be asked from any thread.
  int64_t forks() const { return forks_.load(std::memory_order_relaxed); }

  template <class Body>
  void parallel_for(int64_t n, Body&& body) {
    run(
        n,
        [](void* context, int64_t index) { (*static_cast<std::remove_reference_t<Body>*>(context))(index); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* context, int64_t index);

  // What one thread works from: its share of the indices and its copy of the job, on cache lines of their own,
  // so that calling a thread moves one line. Seat 0 is the caller's.
  enum class State : uint32_t {
    kIdle,     // the job may be written
    kParked,   // as kIdle, but asleep
    kCalled,   // may come in; the caller may still call it off
    kInside,   // works
    kAwaited,  // works, and the caller sleeps until it is done
    kStop,
  };
  struct alignas(128) Seat {
    std::atomic<uint64_t> share{0};  // indices not yet taken: first in the low half, end in the high half
    std::atomic<State> state{State::kIdle};
    Call call = nullptr;
    void* context = nullptr;
    int n_seats = 0;  // that hold shares of this job
  };

  void run(int64_t n, Call call, void* context);
  void run_shared(uint32_t n, int n_seats, Call call, void* context);
  void work(int seat);
  void run_shares(Seat& own);
  bool steal(Seat& own);
  void pin_caller();

  std::vector<std::thread> workers_;
  std::unique_ptr<Seat[]> seats_;  // [size()]
  std::vector<int> pin_to_;
  bool may_exceed_cpus_ = false;
  std::atomic<int64_t> forks_{0};
};

// CPUs in this process's affinity mask when the first pool was made or this was first called; at least 1.
int available_cpus();
// Their numbers, ascending; empty where the system does not tell.
std::vector<int> available_cpu_numbers();

}  // namespace assay
