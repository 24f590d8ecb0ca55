#include "serve/serve_metrics.h"

#include <algorithm>

#include "base/build_info.h"
#include "serve/openai_response.h"

namespace assay {
namespace {

constexpr const char* kBlocksHelp =
    "Blocks of the KV cache by state: used by sequences, cached for reuse, free.";

// The engine's totals never fall; a negative difference would be its bug, not a reason to stop serving.
void add_difference(Counter& counter, int64_t now, int64_t before) {
  counter.add(static_cast<double>(std::max<int64_t>(0, now - before)));
}

}  // namespace

ServeMetrics::ServeMetrics(MetricRegistry& registry)
    : registry_(&registry),
      time_to_first_token_(registry.histogram("assay_time_to_first_token_seconds",
                                              "From a generation request received to its first token.",
                                              latency_buckets())),
      inter_token_latency_(registry.histogram("assay_inter_token_latency_seconds",
                                              "Gap between two tokens of a sequence.", latency_buckets())),
      request_seconds_(registry.histogram("assay_request_seconds",
                                          "From a generation request received to its last token.",
                                          latency_buckets())),
      queue_seconds_(registry.histogram("assay_queue_seconds", "Wait of a sequence before its first step.",
                                        latency_buckets())),
      running_(registry.gauge("assay_running_requests", "Sequences in the running batch.")),
      waiting_(registry.gauge("assay_waiting_requests", "Sequences waiting to run.")),
      blocks_used_(registry.gauge("assay_kv_blocks", kBlocksHelp, {{"state", "used"}})),
      blocks_cached_(registry.gauge("assay_kv_blocks", kBlocksHelp, {{"state", "cached"}})),
      blocks_free_(registry.gauge("assay_kv_blocks", kBlocksHelp, {{"state", "free"}})),
      step_seconds_(registry.gauge("assay_step_seconds", "Time of the latest step.")),
      batch_tokens_(registry.gauge("assay_batch_tokens", "Tokens computed by the latest step.")),
      prompt_tokens_(registry.counter("assay_prompt_tokens_total", "Prompt tokens of accepted sequences.")),
      cached_tokens_(
          registry.counter("assay_prefix_cached_tokens_total",
                           "Prompt tokens taken from the prefix cache instead of being computed.")),
      generated_tokens_(registry.counter("assay_generated_tokens_total", "Tokens generated.")),
      steps_(registry.counter("assay_steps_total", "Steps of the engine.")),
      preemptions_(registry.counter("assay_preemptions_total",
                                    "Sequences stopped for want of KV blocks, to be resumed.")) {}

void ServeMetrics::count_request(const AccessRecord& record) {
  registry_
      ->counter("assay_requests_total",
                "HTTP requests answered, by route and status (499: the client left first).",
                {{"route", record.route.empty() ? "none" : record.route},
                 {"code", std::to_string(record.disconnected ? 499 : record.status)}})
      .add();
}

void ServeMetrics::count_finish(const Completion& completion) {
  registry_
      ->counter("assay_finished_sequences_total", "Sequences ended, by reason.",
                {{"reason", std::string(finish_reason_name(completion.reason))}})
      .add();
  queue_seconds_.observe(completion.usage.queue_seconds);
}

void ServeMetrics::describe(const std::string& model, const std::string& effective_precision) {
  const BuildInfo build = build_info();
  registry_
      ->gauge("assay_precision_info", "The precision that is executed.",
              {{"model", model}, {"precision", effective_precision}})
      .set(1);
  registry_
      ->gauge("assay_build_info", "The build that is running.",
              {{"version", std::string(build.version)},
               {"commit", std::string(build.commit)},
               {"compiler", std::string(build.compiler)}})
      .set(1);
}

void ServeMetrics::collect(const EngineStats& stats) {
  const std::scoped_lock lock(mutex_);
  running_.set(static_cast<double>(stats.running));
  waiting_.set(static_cast<double>(stats.waiting));
  blocks_used_.set(static_cast<double>(stats.kv_blocks_used));
  blocks_cached_.set(static_cast<double>(stats.kv_blocks_cached));
  blocks_free_.set(static_cast<double>(
      std::max<int64_t>(0, stats.kv_blocks_total - stats.kv_blocks_used - stats.kv_blocks_cached)));
  step_seconds_.set(stats.last_step_seconds);
  batch_tokens_.set(static_cast<double>(stats.last_batch_tokens));
  add_difference(prompt_tokens_, stats.prompt_tokens_total, last_.prompt_tokens_total);
  add_difference(cached_tokens_, stats.prompt_tokens_cached_total, last_.prompt_tokens_cached_total);
  add_difference(generated_tokens_, stats.generated_tokens_total, last_.generated_tokens_total);
  add_difference(steps_, stats.steps_total, last_.steps_total);
  add_difference(preemptions_, stats.preemptions_total, last_.preemptions_total);
  last_ = stats;
}

}  // namespace assay
