// The flags of `assay serve` about what an operator is told: access log and traces.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "base/error.h"
#include "serve/watch_config.h"

namespace assay {

struct ServeWatchOptions {
  std::string access_log;
  std::string otlp_endpoint;
  double trace_rate = 0.1;
  std::string trace_slow = "5s";
};

// --access-log --otlp-endpoint --trace-rate --trace-slow
void add_watch_options(CLI::App& app, ServeWatchOptions& options);

// Failure: a time that cannot be read; the error names the flag.
Result<WatchConfig> watch_config_of(const ServeWatchOptions& options);

}  // namespace assay
