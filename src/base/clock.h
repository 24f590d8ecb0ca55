// Time as a dependency: a wall clock for the product, a virtual one for simulation and tests.
// Seconds as double since an arbitrary origin; monotonic. Thread safety: now() may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>

namespace assay {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual double now_seconds() const = 0;
};

class WallClock final : public Clock {
 public:
  double now_seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

// Moves only when told to.
class VirtualClock final : public Clock {
 public:
  double now_seconds() const override { return now_.load(std::memory_order_acquire); }
  void advance(double seconds) { now_.fetch_add(seconds, std::memory_order_acq_rel); }
  void set(double seconds) { now_.store(seconds, std::memory_order_release); }

 private:
  std::atomic<double> now_{0};
};

// Elapsed seconds since construction.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  void restart() { start_ = std::chrono::steady_clock::now(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace assay
