// The server's metrics by name. docs: each help text says what is counted and in which unit.
// Labels are bounded: routes, outcomes and phases are fixed, tenants come from the key file; nothing that a
// client sends becomes one.
// Ownership: borrows the registry. Thread safety: any thread. Cost: observe_*() is a few short locks.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "http/server.h"
#include "serve/request_facts.h"
#include "telemetry/latency_window.h"
#include "telemetry/metrics.h"

namespace assay {

class ServeMetrics {
 public:
  explicit ServeMetrics(MetricRegistry& registry);

  // One HTTP request was answered.
  void count_request(const AccessRecord& record);
  // One request has ended; those that generate are counted by tenant and outcome.
  void count_outcome(const RequestFacts& facts);
  // One sequence ended.
  void count_finish(const Completion& completion);
  void observe_first_token(double seconds);  // of a sequence, since its request was received
  void observe_token_gap(double seconds);

  // assay_precision_info and assay_build_info: constant 1, the facts are in the labels.
  void describe(const std::string& model, const std::string& effective_precision);
  // Copies the engine's figures into the registry.
  void collect(const EngineStats& stats);

  // Generation requests ended so far, by outcome; those that never were are left out.
  std::vector<std::pair<std::string_view, int64_t>> outcomes() const;

  // Of the last minute, beside the histograms of all time.
  const LatencyWindow& recent_first_tokens() const { return recent_first_tokens_; }
  const LatencyWindow& recent_token_gaps() const { return recent_token_gaps_; }

 private:
  class Collection;

  MetricRegistry* registry_;
  WallClock clock_;
  LatencyWindow recent_first_tokens_;
  LatencyWindow recent_token_gaps_;
  Histogram time_to_first_token_;
  Histogram inter_token_latency_;
  Histogram time_per_output_token_;
  Histogram request_seconds_;
  Histogram queue_seconds_;
  Histogram prefill_seconds_;
  Histogram decode_seconds_;
  Histogram prompt_length_;
  Histogram output_length_;
  std::array<std::atomic<int64_t>, static_cast<size_t>(Outcome::kCount)> outcomes_{};
  std::mutex mutex_;  // collect() computes differences
  EngineStats last_;
};

// The engine's name of a tenant as it is shown: what the server asks on its own behalf (its canary) has none,
// and "(internal)" cannot be the name of another.
std::string shown_tenant(const std::string& tenant);

// Tokens found in the prefix cache of those asked for, 0 to 1, since the start.
double prefix_hit_ratio(const EngineStats& stats);
// Positions of used KV blocks that hold no token, of all their positions, 0 to 1.
double fragmentation_ratio(const EngineStats& stats);

}  // namespace assay
