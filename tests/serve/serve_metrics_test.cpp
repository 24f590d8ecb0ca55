#include "serve/serve_metrics.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace assay {
namespace {

bool has_line(const MetricRegistry& registry, const std::string& line) {
  return ("\n" + registry.to_text()).find("\n" + line + "\n") != std::string::npos;
}

EngineStats busy_engine() {
  EngineStats stats;
  stats.running = 3;
  stats.waiting = 2;
  stats.kv_blocks_total = 20;
  stats.kv_page_tokens = 16;
  stats.kv_blocks_used = 10;
  stats.kv_blocks_cached = 4;
  stats.kv_tokens_used = 120;  // of 160 positions
  stats.prompt_tokens_total = 1000;
  stats.generated_tokens_total = 500;
  stats.prefix_tokens_asked_total = 800;
  stats.prefix_tokens_found_total = 600;
  stats.prefill_steps_total = 7;
  stats.decode_steps_total = 70;
  stats.prefill_seconds_total = 0.5;
  stats.decode_seconds_total = 1.5;
  stats.last_batch_tokens = 33;
  stats.last_batch_sequences = 3;
  stats.last_batch_prefill_tokens = 30;
  stats.tenants = {{.tenant = "", .running = 1},
                   {.tenant = "acme", .running = 2, .waiting = 2, .kv_blocks = 6}};
  return stats;
}

TEST(ServeMetrics, figures_of_the_engine_are_gauges_and_growing_counters) {
  MetricRegistry registry;
  ServeMetrics metrics(registry);
  EngineStats stats = busy_engine();
  metrics.collect(stats);
  for (const char* line : {"assay_running_requests 3",
                           "assay_waiting_requests 2",
                           R"(assay_kv_blocks{state="used"} 10)",
                           R"(assay_kv_blocks{state="cached"} 4)",
                           R"(assay_kv_blocks{state="free"} 6)",
                           "assay_kv_usage_ratio 0.5",
                           "assay_kv_fragmentation_ratio 0.25",
                           "assay_prefix_hit_ratio 0.75",
                           "assay_prefix_asked_tokens_total 800",
                           "assay_prefix_found_tokens_total 600",
                           R"(assay_steps_total{phase="prefill"} 7)",
                           R"(assay_steps_total{phase="decode"} 70)",
                           R"(assay_step_seconds_total{phase="prefill"} 0.5)",
                           R"(assay_step_seconds_total{phase="decode"} 1.5)",
                           "assay_batch_tokens 33",
                           "assay_batch_sequences 3",
                           "assay_batch_prefill_tokens 30",
                           "assay_tenant_running_requests{tenant=\"(internal)\"} 1",
                           R"(assay_tenant_running_requests{tenant="acme"} 2)",
                           R"(assay_tenant_kv_blocks{tenant="acme"} 6)"}) {
    EXPECT_TRUE(has_line(registry, line)) << line << "\nin\n" << registry.to_text();
  }
  stats.generated_tokens_total += 10;
  stats.running = 0;
  stats.decode_seconds_total -= 1;  // cannot be; must not end the server
  metrics.collect(stats);
  EXPECT_TRUE(has_line(registry, "assay_generated_tokens_total 510"));
  EXPECT_TRUE(has_line(registry, "assay_running_requests 0"));
  EXPECT_TRUE(has_line(registry, R"(assay_step_seconds_total{phase="decode"} 1.5)"));
}

TEST(ServeMetrics, ratios_of_an_idle_engine_are_zero) {
  EXPECT_EQ(prefix_hit_ratio({}), 0);
  EXPECT_EQ(fragmentation_ratio({}), 0);
}

TEST(ServeMetrics, finished_sequence_is_observed_by_phase) {
  MetricRegistry registry;
  ServeMetrics metrics(registry);
  Completion completion;
  completion.usage = {.prompt_tokens = 100,
                      .completion_tokens = 5,
                      .queue_seconds = 0.25,
                      .prefill_seconds = 0.5,
                      .decode_seconds = 2};
  metrics.count_finish(completion);
  completion.usage = {.prompt_tokens = 3};
  completion.reason = FinishReason::kCancelled;
  metrics.count_finish(completion);  // before its first token: no phases
  for (const char* line :
       {"assay_queue_seconds_sum 0.25", "assay_queue_seconds_count 1", "assay_prefill_seconds_sum 0.5",
        "assay_decode_seconds_sum 2", "assay_time_per_output_token_seconds_sum 0.5",
        "assay_request_prompt_tokens_sum 103", "assay_request_prompt_tokens_count 2",
        R"(assay_request_prompt_tokens_bucket{le="64"} 1)", "assay_request_output_tokens_sum 5",
        R"(assay_finished_sequences_total{reason="cancelled"} 1)"}) {
    EXPECT_TRUE(has_line(registry, line)) << line << "\nin\n" << registry.to_text();
  }
}

TEST(ServeMetrics, labels_come_from_us_whatever_a_client_sends) {
  MetricRegistry registry;
  ServeMetrics metrics(registry);
  for (int i = 0; i < 50; ++i) {
    RequestFacts facts;
    facts.generation.operation = "chat";
    facts.generation.model = "made-up-" + std::to_string(i);
    facts.request_id = std::to_string(i);
    facts.error_code = "code-" + std::to_string(i);
    facts.status = 404;
    facts.outcome = Outcome::kInvalid;
    metrics.count_outcome(facts);
    facts.outcome = Outcome::kRefusedKey;
    metrics.count_outcome(facts);
  }
  EXPECT_TRUE(
      has_line(registry, R"(assay_generation_requests_total{outcome="invalid",tenant="default"} 50)"));
  EXPECT_TRUE(
      has_line(registry, R"(assay_generation_requests_total{outcome="refused_key",tenant="none"} 50)"));
  std::istringstream text(registry.to_text());
  int lines = 0;
  for (std::string line; std::getline(text, line);) lines += line.starts_with("assay_generation") ? 1 : 0;
  EXPECT_EQ(lines, 2);
}

}  // namespace
}  // namespace assay
