#include "serve/request_observer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/build_info.h"
#include "base/log.h"
#include "serve/access_line.h"
#include "serve/otlp_post.h"

namespace assay {
namespace {

int64_t unix_nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

SpanExporterConfig exporter_config(const ServedIdentity& served) {
  SpanExporterConfig config;
  const std::string version(build_info().version);
  config.resource = {{"service.name", std::string("assay")},
                     {"service.version", version},
                     {"assay.model", served.model},
                     {"assay.precision", served.precision}};
  config.scope = {"assay.serve", version};
  return config;
}

// Counters that are kept elsewhere and only grow.
void raise_to(Counter& counter, int64_t now, int64_t& before) {
  if (now > before) counter.add(static_cast<double>(now - before));
  before = std::max(now, before);
}

}  // namespace

RequestObserver::RequestObserver(const WatchConfig& config, ServedIdentity served, ServeMetrics& metrics)
    : config_(config), served_(std::move(served)), metrics_(metrics) {}

Result<std::unique_ptr<RequestObserver>> RequestObserver::open(const WatchConfig& config,
                                                               ServedIdentity served, ServeMetrics& metrics,
                                                               MetricRegistry& registry) {
  std::unique_ptr<RequestObserver> observer(new RequestObserver(config, std::move(served), metrics));
  if (!config.access_log.empty()) {
    LineLogConfig log{.path = config.access_log};
    log.on_trouble = [](const std::string& sentence) { log_warning("access log {}", sentence); };
    ASSIGN_OR_RETURN(observer->access_log_, LineLog::open(std::move(log)));
  }
  if (!config.otlp_endpoint.empty()) {
    ASSIGN_OR_RETURN(SpanExporter::Post post, make_otlp_post(config.otlp_endpoint));
    observer->exporter_ = SpanExporter::start(exporter_config(observer->served_), std::move(post));
  }
  observer->watch_losses(registry);
  return observer;
}

void RequestObserver::watch_losses(MetricRegistry& registry) {
  if (access_log_) {
    Counter lost = registry.counter("assay_access_log_dropped_lines_total",
                                    "Lines of the access log that a slow or full disk lost.");
    registry.on_collect([this, lost, before = int64_t{0}]() mutable {
      const std::scoped_lock lock(mutex_);
      raise_to(lost, access_log_->dropped_lines(), before);
    });
  }
  if (!exporter_) return;
  constexpr const char* kHelp = "Spans by what became of them: exported, or dropped for a reason.";
  const auto watch = [&](const char* result, int64_t SpanExporterStats::*field) {
    Counter counter = registry.counter("assay_trace_spans_total", kHelp, {{"result", result}});
    registry.on_collect([this, counter, field, before = int64_t{0}]() mutable {
      const std::scoped_lock lock(mutex_);
      raise_to(counter, exporter_->stats().*field, before);
    });
  };
  watch("exported", &SpanExporterStats::exported);
  watch("dropped_queue_full", &SpanExporterStats::dropped_queue_full);
  watch("dropped_unreachable", &SpanExporterStats::dropped_unreachable);
  watch("dropped_refused", &SpanExporterStats::dropped_refused);
}

std::shared_ptr<ObservedResponder> RequestObserver::observe(const HttpRequest& request,
                                                            std::string_view route,
                                                            std::shared_ptr<Responder> responder) {
  RequestFacts facts;
  facts.method = request.method;
  facts.route = route;
  facts.request_id = request.request_id;
  facts.client = request.peer;
  facts.received_unix_nanoseconds = unix_nanoseconds_now();
  facts.generation.operation = operation_of(request.method, route);
  const auto header = request.headers.find("traceparent");
  const auto caller = header ? parse_traceparent(*header) : std::nullopt;
  facts.own = {caller ? caller->trace : make_trace_id(), make_span_id(), false};
  facts.own.sampled = caller ? caller->sampled : is_sampled(facts.own.trace, config_.trace_rate);
  if (caller) {
    facts.caller = caller->span;
    const auto state = request.headers.find("tracestate");
    if (state && is_valid_tracestate(*state)) facts.trace_state = *state;
  }
  Headers extra;
  if (exporter_ && !facts.generation.operation.empty()) {
    extra.add("traceresponse", format_traceparent(facts.own));
  }
  return std::make_shared<ObservedResponder>(std::move(responder), std::move(facts), std::move(extra),
                                             [this](const RequestFacts& done) { report(done); });
}

bool RequestObserver::keeps_trace(const RequestFacts& facts) const {
  if (facts.generation.operation.empty()) return false;
  return facts.own.sampled || facts.outcome == Outcome::kError || facts.status >= 500 ||
         facts.times.ended > config_.trace_slow_seconds;
}

void RequestObserver::report(const RequestFacts& facts) {
  metrics_.count_outcome(facts);
  if (access_log_) access_log_->write(to_access_line(facts));
  if (!exporter_ || !keeps_trace(facts)) return;
  std::vector<Span> spans;
  {
    const std::scoped_lock lock(mutex_);
    spans = to_spans(facts, served_);
  }
  exporter_->offer(std::move(spans));
}

void RequestObserver::count_unrouted(const AccessRecord& record) {
  if (!access_log_ || !record.route.empty()) return;
  RequestFacts facts;
  facts.method = record.method;
  facts.request_id = record.request_id;
  facts.tenant.clear();
  facts.received_unix_nanoseconds = unix_nanoseconds_now() - static_cast<int64_t>(record.seconds * 1e9);
  facts.times.ended = record.seconds;
  facts.status = record.disconnected ? 499 : record.status;
  facts.body_bytes = record.body_bytes;
  facts.outcome = outcome_of(facts.status, {});
  access_log_->write(to_access_line(facts));
}

void RequestObserver::set_address(std::string address) {
  const std::scoped_lock lock(mutex_);
  served_.address = std::move(address);
}

void RequestObserver::reopen_access_log() {
  if (access_log_) access_log_->reopen();
}

void RequestObserver::close(double timeout_seconds) {
  if (exporter_) exporter_->close(timeout_seconds);
  if (access_log_) access_log_->flush();
}

}  // namespace assay
