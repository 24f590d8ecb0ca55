#include "serve/live_sample.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

namespace json = boost::json;

// Five significant digits: a screen shows fewer, and the document stays small.
double short_number(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, 4 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

json::value or_null(const std::optional<double>& value) {
  return value ? json::value(short_number(*value)) : json::value(nullptr);
}

void add_percentiles(json::array& row, const Percentiles& percentiles) {
  for (size_t i = 0; i < 3; ++i) {
    row.push_back(percentiles ? json::value(short_number((*percentiles)[i])) : json::value(nullptr));
  }
}

std::optional<double> ratio(double part, double whole) {
  if (whole <= 0) return std::nullopt;
  return part / whole;
}

}  // namespace

LiveSample make_sample(double unix_seconds, double seconds, const EngineStats& before,
                       const EngineStats& now) {
  const auto grown = [&](int64_t EngineStats::*field) {
    return static_cast<double>(std::max<int64_t>(0, now.*field - before.*field));
  };
  const double span = std::max(seconds, 1e-3);
  const double cached = grown(&EngineStats::prompt_tokens_cached_total);
  LiveSample sample{.unix_seconds = unix_seconds};
  sample.output_tokens_per_second = grown(&EngineStats::generated_tokens_total) / span;
  sample.prompt_tokens_per_second = std::max(0.0, grown(&EngineStats::prompt_tokens_total) - cached) / span;
  sample.running = now.running;
  sample.waiting = now.waiting;
  sample.kv_used = now.kv_blocks_used;
  sample.kv_cached = now.kv_blocks_cached;
  sample.prefix_hit_ratio =
      ratio(grown(&EngineStats::prefix_tokens_found_total), grown(&EngineStats::prefix_tokens_asked_total));
  sample.prefill_step_seconds = ratio(now.prefill_seconds_total - before.prefill_seconds_total,
                                      grown(&EngineStats::prefill_steps_total));
  sample.decode_step_seconds =
      ratio(now.decode_seconds_total - before.decode_seconds_total, grown(&EngineStats::decode_steps_total));
  return sample;
}

json::array sample_columns() {
  return {"time",
          "output_tps",
          "prompt_tps",
          "ttft_p50",
          "ttft_p95",
          "ttft_p99",
          "itl_p50",
          "itl_p95",
          "itl_p99",
          "running",
          "waiting",
          "kv_used",
          "kv_cached",
          "prefix_hit_ratio",
          "prefill_step_seconds",
          "decode_step_seconds"};
}

json::array to_row(const LiveSample& sample) {
  json::array row{std::round(sample.unix_seconds * 1000) / 1000,
                  short_number(sample.output_tokens_per_second),
                  short_number(sample.prompt_tokens_per_second)};
  add_percentiles(row, sample.first_token);
  add_percentiles(row, sample.token_gap);
  for (const int64_t count : {sample.running, sample.waiting, sample.kv_used, sample.kv_cached}) {
    row.push_back(count);
  }
  row.push_back(or_null(sample.prefix_hit_ratio));
  row.push_back(or_null(sample.prefill_step_seconds));
  row.push_back(or_null(sample.decode_step_seconds));
  return row;
}

}  // namespace assay
