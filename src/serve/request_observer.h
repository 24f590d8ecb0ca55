// Where the facts of every request go: counters by tenant and outcome, the access log, the traces.
//
// A trace is kept when the client's traceparent says so, else by the head rate; and whatever was decided at
// the start, when the request failed by the server's fault or was slow. Ids are made for every request, so
// that log, trace and answer agree. Answers carry `traceresponse` (W3C Trace Context level 2, draft) when
// traces are exported.
// Ownership: borrows the metrics, which must outlive it. Thread safety: any thread. Failure: open() reports
// an access log that cannot be written and an endpoint that is no URL. Cost: microseconds a request, nothing
// per token.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/server.h"
#include "serve/request_spans.h"
#include "serve/request_watch.h"
#include "serve/serve_metrics.h"
#include "serve/watch_config.h"
#include "telemetry/line_log.h"
#include "telemetry/span_exporter.h"

namespace assay {

class RequestObserver {
 public:
  static Result<std::unique_ptr<RequestObserver>> open(const WatchConfig& config, ServedIdentity served,
                                                       ServeMetrics& metrics, MetricRegistry& registry);

  // The responder that the handler of `route` gets.
  std::shared_ptr<ObservedResponder> observe(const HttpRequest& request, std::string_view route,
                                             std::shared_ptr<Responder> responder);
  // A request that no handler got to see.
  void count_unrouted(const AccessRecord& record);

  // The address that requests come to; set once it is known.
  void set_address(std::string address);
  // Opens the access log's file anew, after it was moved away.
  void reopen_access_log();
  // Hands over what waits. Blocks.
  void close(double timeout_seconds);

 private:
  RequestObserver(const WatchConfig& config, ServedIdentity served, ServeMetrics& metrics);

  void report(const RequestFacts& facts);
  bool keeps_trace(const RequestFacts& facts) const;
  void watch_losses(MetricRegistry& registry);

  const WatchConfig config_;
  std::mutex mutex_;  // of the address, and of what is collected
  ServedIdentity served_;
  ServeMetrics& metrics_;
  std::unique_ptr<LineLog> access_log_;
  std::unique_ptr<SpanExporter> exporter_;
};

}  // namespace assay
