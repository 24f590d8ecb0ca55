#include "telemetry/span_exporter.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace assay {
namespace {

using SteadyClock = std::chrono::steady_clock;

SteadyClock::time_point after(double seconds) {
  return SteadyClock::now() +
         std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
}

bool is_worth_retrying(const Result<ExportAnswer>& answer) {
  if (!answer) return true;
  return answer->status == 429 || answer->status == 502 || answer->status == 503 || answer->status == 504;
}

class ThreadedSpanExporter final : public SpanExporter {
 public:
  ThreadedSpanExporter(SpanExporterConfig config, Post post)
      : config_(std::move(config)), post_(std::move(post)), random_(std::random_device{}(), "otlp pauses") {
    CHECK(config_.max_batch_spans > 0);
    thread_ = std::thread([this] { work(); });
  }
  ~ThreadedSpanExporter() override { close(0); }

  bool offer(std::vector<Span> spans) override {
    {
      const std::scoped_lock lock(mutex_);
      if (closing_ || queue_.size() + spans.size() > config_.max_queued_spans) {
        stats_.dropped_queue_full += std::ssize(spans);
        return false;
      }
      if (queue_.empty()) oldest_ = SteadyClock::now();
      std::ranges::move(spans, std::back_inserter(queue_));
    }
    changed_.notify_one();
    return true;
  }

  SpanExporterStats stats() const override {
    const std::scoped_lock lock(mutex_);
    return stats_;
  }

  void close(double timeout_seconds) override {
    {
      const std::scoped_lock lock(mutex_);
      if (!closing_) deadline_ = after(timeout_seconds);
      closing_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void work() {
    while (true) {
      const std::vector<Span> batch = wait_for_batch();
      if (batch.empty()) return;
      deliver(batch);
    }
  }

  // Empty: closed, and nothing is left to be sent.
  std::vector<Span> wait_for_batch() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    const auto full_by = oldest_ + std::chrono::duration_cast<SteadyClock::duration>(
                                       std::chrono::duration<double>(config_.max_delay_seconds));
    changed_.wait_until(lock, full_by,
                        [this] { return closing_ || queue_.size() >= config_.max_batch_spans; });
    if (closing_ && SteadyClock::now() >= deadline_) {
      stats_.dropped_unreachable += std::ssize(queue_);
      queue_.clear();
    }
    const size_t n = std::min(queue_.size(), config_.max_batch_spans);
    std::vector<Span> batch(std::make_move_iterator(queue_.begin()),
                            std::make_move_iterator(queue_.begin() + static_cast<std::ptrdiff_t>(n)));
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(n));
    oldest_ = SteadyClock::now();
    return batch;
  }

  void deliver(const std::vector<Span>& batch) {
    const std::string body = to_otlp_json(config_.resource, config_.scope, batch);
    double pause = config_.first_pause_seconds;
    for (int attempt = 1;; ++attempt) {
      const Result<ExportAnswer> answer = post_(body);
      if (answer && answer->status >= 200 && answer->status < 300)
        return count(&SpanExporterStats::exported, batch);
      if (!is_worth_retrying(answer)) return count(&SpanExporterStats::dropped_refused, batch);
      if (attempt >= config_.max_attempts) return count(&SpanExporterStats::dropped_unreachable, batch);
      const double asked = answer ? answer->retry_after_seconds : 0;
      const double seconds = asked > 0 ? asked : pause * random_.uniform(0.75, 1.25);
      pause = std::min(2 * pause, config_.longest_pause_seconds);
      if (!rest(std::min(seconds, config_.longest_pause_seconds)))
        return count(&SpanExporterStats::dropped_unreachable, batch);
    }
  }

  // False: the exporter is being closed.
  bool rest(double seconds) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_until(lock, after(seconds), [this] { return closing_; });
  }

  void count(int64_t SpanExporterStats::*counter, const std::vector<Span>& batch) {
    const std::scoped_lock lock(mutex_);
    stats_.*counter += std::ssize(batch);
  }

  const SpanExporterConfig config_;
  const Post post_;
  Random random_;  // the thread's
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Span> queue_;
  SteadyClock::time_point oldest_;
  SteadyClock::time_point deadline_;
  SpanExporterStats stats_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<SpanExporter> SpanExporter::start(SpanExporterConfig config, Post post) {
  return std::make_unique<ThreadedSpanExporter>(std::move(config), std::move(post));
}

}  // namespace assay
