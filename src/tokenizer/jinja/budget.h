// What one rendering may use: evaluation steps, memory, depth. A hostile template runs into one of these and
// ends with a clear error. Internal to the template engine. Not thread safe: one Budget per rendering.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tokenizer/jinja/failure.h"

namespace assay::tokenizer_internal::jinja {

inline constexpr size_t kMaxSourceBytes = size_t{1} << 20;  // the largest known template has 30 KB
inline constexpr int kMaxSyntaxDepth = 200;                 // nested blocks and brackets
inline constexpr int kMaxExpressionDepth = 500;             // levels of one expression, long sums included
inline constexpr int kMaxEvaluationDepth = 1000;            // the same over all active macro calls
inline constexpr int kMaxValueDepth = 128;                  // nested lists and dicts
inline constexpr uint64_t kMaxSteps = 10'000'000;
inline constexpr uint64_t kMaxHeapBytes = uint64_t{256} << 20;
inline constexpr uint64_t kMaxOutputBytes = uint64_t{64} << 20;
inline constexpr int64_t kMaxRange = 100'000;  // the same as Jinja's sandbox

class Budget {
 public:
  // One step is about one node of the syntax tree; work on `bytes` of text or memory counts one per 64 bytes.
  void spend(uint64_t steps = 1) {
    if (steps > steps_left_) fail_limit("the template takes more than {} steps", kMaxSteps);
    steps_left_ -= steps;
  }
  void spend_bytes(uint64_t bytes) { spend(1 + bytes / 64); }

  void take(uint64_t bytes) {
    if (bytes > kMaxHeapBytes - used_bytes_) {
      fail_limit("the template needs more than {} MiB of memory", kMaxHeapBytes >> 20);
    }
    used_bytes_ += bytes;
  }
  void release(uint64_t bytes) { used_bytes_ -= bytes; }

  void enter() {
    if (++depth_ > kMaxEvaluationDepth) {
      --depth_;
      fail_limit("the template nests deeper than {} levels while it runs", kMaxEvaluationDepth);
    }
  }
  void leave() { --depth_; }

 private:
  uint64_t steps_left_ = kMaxSteps;
  uint64_t used_bytes_ = 0;
  int depth_ = 0;
};

class DepthGuard {
 public:
  explicit DepthGuard(Budget& budget) : budget_(budget) { budget_.enter(); }
  ~DepthGuard() { budget_.leave(); }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Budget& budget_;
};

}  // namespace assay::tokenizer_internal::jinja
