// The server's metrics by name. docs: each help text says what is counted and in which unit.
// Ownership: borrows the registry and, while it collects, the engine. Thread safety: any thread.
#pragma once

#include <array>
#include <mutex>
#include <string>

#include "engine/engine.h"
#include "http/server.h"
#include "telemetry/metrics.h"

namespace assay {

class ServeMetrics {
 public:
  explicit ServeMetrics(MetricRegistry& registry);

  // One HTTP request was answered.
  void count_request(const AccessRecord& record);
  // One sequence ended.
  void count_finish(const Completion& completion);
  void observe_first_token(double seconds) { time_to_first_token_.observe(seconds); }
  void observe_token_gap(double seconds) { inter_token_latency_.observe(seconds); }
  // One generation request, all its choices, from received to done.
  void observe_request(double seconds) { request_seconds_.observe(seconds); }

  // assay_precision_info and assay_build_info: constant 1, the facts are in the labels.
  void describe(const std::string& model, const std::string& effective_precision);
  // Copies the engine's figures into the registry.
  void collect(const EngineStats& stats);

 private:
  MetricRegistry* registry_;
  Histogram time_to_first_token_;
  Histogram inter_token_latency_;
  Histogram request_seconds_;
  Histogram queue_seconds_;
  Gauge running_;
  Gauge waiting_;
  Gauge blocks_used_;
  Gauge blocks_cached_;
  Gauge blocks_free_;
  Gauge step_seconds_;
  Gauge batch_tokens_;
  Counter prompt_tokens_;
  Counter cached_tokens_;
  Counter generated_tokens_;
  Counter steps_;
  Counter preemptions_;
  std::mutex mutex_;  // collect() computes differences
  EngineStats last_;
};

}  // namespace assay
