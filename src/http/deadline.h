// Internal: one deadline of a connection that moves often and is rarely reached. The timer underneath is
// restarted only when the deadline comes nearer; when it fires too early it waits for the rest.
// Runs on the connection's strand.
#pragma once

#include "http/asio.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace assay::http_internal {

using Executor = boost::asio::strand<boost::asio::io_context::executor_type>;
using Clock = std::chrono::steady_clock;
using Timer = boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor>;

inline Clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

class Deadline {
 public:
  explicit Deadline(const Executor& executor) : timer_(executor) {}

  // `owner` is kept alive while the timer runs, and told when the deadline has passed.
  void set(Clock::time_point when, const std::shared_ptr<void>& owner, std::function<void()> passed) {
    when_ = when;
    if (wakes_ && *wakes_ <= when) return;
    passed_ = std::move(passed);
    start(owner);
  }
  void clear() { when_.reset(); }
  std::optional<Clock::time_point> when() const { return when_; }
  // Lets go of the owner at once.
  void stop() {
    when_.reset();
    wakes_.reset();
    ++generation_;
    timer_.cancel();
  }

 private:
  void start(const std::shared_ptr<void>& owner) {
    wakes_ = when_;
    const uint64_t generation = ++generation_;
    timer_.expires_at(*when_);  // cancels an earlier wait
    timer_.async_wait([this, owner, generation](const boost::system::error_code&) {
      if (generation != generation_) return;
      wakes_.reset();
      if (!when_) return;
      if (Clock::now() < *when_) return start(owner);
      when_.reset();
      passed_();
    });
  }

  Timer timer_;
  std::optional<Clock::time_point> when_;
  std::optional<Clock::time_point> wakes_;
  std::function<void()> passed_;
  uint64_t generation_ = 0;
};

}  // namespace assay::http_internal
