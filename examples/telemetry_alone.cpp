// Counts, gauges and a histogram, printed as Prometheus reads them. Links assay_telemetry alone.
#include <cstdio>

#include "telemetry/metrics.h"

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
}
