// Sends finished spans to a collector from its own thread: bounded queue, batches, retries with growing
// pauses; what cannot be kept or delivered is dropped and counted, never waited for.
//
// How a batch travels is the caller's: `post` sends one OTLP JSON body and may block. Source of what is
// retried: OpenTelemetry Protocol specification, "OTLP/HTTP Response" (429, 502, 503, 504 and failures of
// the connection; a Retry-After is kept). Thread safety: any thread. Cost: offer() moves the spans under a
// short lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "telemetry/span.h"

namespace assay {

struct ExportAnswer {
  int status = 200;
  double retry_after_seconds = 0;  // 0: the collector named none
};

struct SpanExporterConfig {
  size_t max_queued_spans = 4096;
  size_t max_batch_spans = 256;
  double max_delay_seconds = 1;  // how long a batch may fill
  int max_attempts = 5;
  double first_pause_seconds = 0.5;  // before the second attempt; doubles, and varies by a quarter
  double longest_pause_seconds = 15;
  std::vector<SpanAttribute> resource;
  InstrumentationScope scope;
};

struct SpanExporterStats {
  int64_t exported = 0;             // spans that a collector took
  int64_t dropped_queue_full = 0;   // spans
  int64_t dropped_unreachable = 0;  // spans whose attempts ran out, or that shutdown left
  int64_t dropped_refused = 0;      // spans that the collector answered with another status
};

class SpanExporter {
 public:
  using Post = std::function<Result<ExportAnswer>(const std::string& otlp_json)>;

  static std::unique_ptr<SpanExporter> start(SpanExporterConfig config, Post post);
  virtual ~SpanExporter() = default;  // close(0)

  // All of them, or none when the queue has no room: spans of one request belong together.
  virtual bool offer(std::vector<Span> spans) = 0;
  virtual SpanExporterStats stats() const = 0;
  // Sends what waits, each batch once, until the time is over; what then is left is dropped. Returns when
  // the thread has ended, which an attempt in progress may delay.
  virtual void close(double timeout_seconds) = 0;
};

}  // namespace assay
