// What an operator asks to be told. Plain values.
#pragma once

#include <string>

namespace assay {

struct WatchConfig {
  std::string access_log;         // a file, "-" for standard output, or empty: none
  std::string otlp_endpoint;      // "http://127.0.0.1:4318"; empty: no traces
  double trace_rate = 0.1;        // share of requests without a traceparent that are traced
  double trace_slow_seconds = 5;  // slower ones always are
};

}  // namespace assay
