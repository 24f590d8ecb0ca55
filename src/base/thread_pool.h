// A fork-join pool for loops that take microseconds. parallel_for(n, body) runs body(i) for i in [0, n) on
// all threads, the caller's included, and returns when every i is done. Indices are handed out one by one, so
// which thread runs which index is not fixed: bodies must write to places that depend on the index alone.
//
// Waiting threads spin briefly, then park; a parked pool costs nothing. Thread safety: one caller at a time
// (the pool belongs to one engine). Nested calls run serially on the calling thread. Bodies must not throw.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace assay {

class ThreadPool {
 public:
  // `n_threads` counts the caller; 0 means the number of CPUs this process may run on. Where the system
  // refuses threads the pool is smaller; size() says how large.
  explicit ThreadPool(int n_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  template <class Body>
  void parallel_for(int64_t n, Body&& body) {
    run(
        n,
        [](void* context, int64_t index) { (*static_cast<std::remove_reference_t<Body>*>(context))(index); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* context, int64_t index);

  static constexpr uint32_t kOpen = uint32_t{1} << 31;

  void run(int64_t n, Call call, void* context);
  bool enter();
  void work();

  std::vector<std::thread> workers_;
  // The job. Written only while entry_ is zero: closed, and nobody inside.
  Call call_ = nullptr;
  void* context_ = nullptr;
  int64_t n_ = 0;
  alignas(64) std::atomic<uint32_t> generation_{0};  // bumped once per job; also by the destructor
  alignas(64) std::atomic<int64_t> next_{0};         // next index to hand out
  alignas(64) std::atomic<uint32_t> entry_{0};  // kOpen while a job may be joined, plus the workers inside
  alignas(64) std::atomic<int> parked_{0};
  std::atomic<bool> stop_{false};
};

// CPUs in this process's affinity mask; at least 1.
int available_cpus();

}  // namespace assay
