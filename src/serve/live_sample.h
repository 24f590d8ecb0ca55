// One second of a server's life, from two looks at its engine. Plain values, pure.
#pragma once

#include <boost/json/array.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace assay {

// Percentiles 50, 95 and 99 of the last minute, in seconds; none: nothing was observed.
using Percentiles = std::optional<std::vector<double>>;

struct LiveSample {
  double unix_seconds = 0;
  double output_tokens_per_second = 0;
  double prompt_tokens_per_second = 0;  // computed: without those from the prefix cache
  Percentiles first_token;
  Percentiles token_gap;
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t kv_used = 0;
  int64_t kv_cached = 0;
  std::optional<double> prefix_hit_ratio;      // of this second; none: nothing was looked up
  std::optional<double> prefill_step_seconds;  // mean of this second; none: there was no such step
  std::optional<double> decode_step_seconds;
};

LiveSample make_sample(double unix_seconds, double seconds, const EngineStats& before,
                       const EngineStats& now);

// The names of a sample's figures, and their values in the same order; absent ones are null.
boost::json::array sample_columns();
boost::json::array to_row(const LiveSample& sample);

}  // namespace assay
