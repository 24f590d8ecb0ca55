// Counts, gauges and a histogram, printed as Prometheus reads them, and a span as an OpenTelemetry collector
// does. Links assay_telemetry alone.
#include <cstdio>
#include <span>
#include <string>

#include "telemetry/metrics.h"
#include "telemetry/span.h"

int main() {
  assay::MetricRegistry registry;
  assay::Counter cups = registry.counter("kitchen_cups_total", "Cups filled.", {{"drink", "tea"}});
  assay::Gauge water = registry.gauge("kitchen_kettle_water_liters", "Water in the kettle.");
  assay::Histogram waits =
      registry.histogram("kitchen_wait_seconds", "Wait for a cup.", assay::latency_buckets());
  water.set(1.5);
  for (const double seconds : {12.0, 31.0, 8.5}) {
    cups.add();
    water.add(-0.25);
    waits.observe(seconds);
  }
  std::fputs(registry.to_text().c_str(), stdout);

  assay::Span brewing;
  brewing.trace = assay::make_trace_id();
  brewing.id = assay::make_span_id();
  brewing.name = "brew";
  brewing.start_unix_nanoseconds = 1'700'000'000'000'000'000;
  brewing.end_unix_nanoseconds = brewing.start_unix_nanoseconds + 12'000'000'000;
  brewing.attributes = {{"drink", "tea"}};
  const std::string body =
      assay::to_otlp_json({}, {.name = "kitchen", .version = "1"}, std::span(&brewing, 1));
  std::printf("%s\n", body.c_str());
}
