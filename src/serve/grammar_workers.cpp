#include "serve/grammar_workers.h"

#include <utility>

namespace assay {

GrammarWorkers::GrammarWorkers(int n_threads, size_t max_waiting) : max_waiting_(max_waiting) {
  for (int i = 0; i < n_threads; ++i) threads_.emplace_back([this] { work(); });
}

GrammarWorkers::~GrammarWorkers() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool GrammarWorkers::submit(std::function<void()> job) {
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() >= max_waiting_) return false;
    waiting_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

void GrammarWorkers::work() {
  while (true) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
      if (stop_) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    job();
  }
}

}  // namespace assay
