// Threads that compile grammars, so that neither the I/O threads nor the engine wait for a schema. Bounded:
// what does not fit into the queue is refused. Thread safety: any thread. Ownership: the destructor lets
// running jobs end and drops those that wait.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace assay {

class GrammarWorkers {
 public:
  static constexpr int kThreads = 1;  // compiling is rare, and cores belong to the model
  static constexpr size_t kMaxWaiting = 64;

  explicit GrammarWorkers(int n_threads = kThreads, size_t max_waiting = kMaxWaiting);
  ~GrammarWorkers();
  GrammarWorkers(const GrammarWorkers&) = delete;
  GrammarWorkers& operator=(const GrammarWorkers&) = delete;

  // In order of submission. False: the queue is full. The job must not throw.
  bool submit(std::function<void()> job);

 private:
  void work();

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace assay
