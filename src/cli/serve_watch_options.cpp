#include "cli/serve_watch_options.h"

#include <CLI/CLI.hpp>

#include "base/units.h"

namespace assay {

void add_watch_options(CLI::App& app, ServeWatchOptions& options) {
  app.add_option("--access-log", options.access_log,
                 "file for one JSON line per request; - is standard output. SIGHUP opens it anew")
      ->group("Watching");
  app.add_option("--otlp-endpoint", options.otlp_endpoint,
                 "OpenTelemetry collector that gets traces (OTLP/HTTP JSON), e.g. http://127.0.0.1:4318")
      ->group("Watching");
  app.add_option("--trace-rate", options.trace_rate,
                 "share of the requests without a traceparent that are traced")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group("Watching");
  app.add_option("--trace-slow", options.trace_slow,
                 "requests that take longer are always traced, as failed ones are")
      ->capture_default_str()
      ->group("Watching");
}

Result<WatchConfig> watch_config_of(const ServeWatchOptions& options) {
  WatchConfig config{.access_log = options.access_log,
                     .otlp_endpoint = options.otlp_endpoint,
                     .trace_rate = options.trace_rate};
  const auto slow = parse_seconds(options.trace_slow);
  if (!slow) return std::unexpected(slow.error().within("--trace-slow"));
  config.trace_slow_seconds = *slow;
  return config;
}

}  // namespace assay
