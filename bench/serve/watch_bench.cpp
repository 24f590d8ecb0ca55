// What watching costs: per token on the engine's step thread, per request, and per look at /metrics and
// /debug/state, which keep an I/O thread busy. Bounds: a step of 16 sequences at 50 ms should lose less than
// a thousandth to its 16 tokens, 3 us a token; a request of 100 ms less than a thousandth, 100 us; a look
// less than the 10 ms after which streams on the same thread would show it.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "engine/engine.h"
#include "serve/access_line.h"
#include "serve/live_state.h"
#include "serve/request_spans.h"
#include "serve/serve_metrics.h"
#include "telemetry/line_log.h"
#include "telemetry/span.h"

namespace {

using namespace assay;

RequestFacts finished_request() {
  RequestFacts facts;
  facts.method = "POST";
  facts.route = "/v1/chat/completions";
  facts.request_id = "req-0123456789abcdef0123456789abcdef";
  facts.client = "127.0.0.1:51234";
  facts.own = {make_trace_id(), make_span_id(), true};
  facts.received_unix_nanoseconds = 1'700'000'000'000'000'000;
  facts.times = {.submitted = 0.001, .started = 0.002, .first_token = 0.05, .last_token = 0.4, .ended = 0.4};
  facts.generation = {.operation = "chat",
                      .model = "smollm2-135m",
                      .response_id = "chatcmpl-0123456789abcdef0123456789abcdef",
                      .stream = true,
                      .temperature = 0.7,
                      .output_type = "text",
                      .finish_reasons = {"stop"},
                      .prompt_tokens = 37,
                      .cached_tokens = 16,
                      .output_tokens = 24};
  facts.status = 200;
  facts.outcome = Outcome::kStop;
  return facts;
}

// Stands still with a large cache, half in use.
class StillEngine final : public Engine {
 public:
  static constexpr int64_t kPages = 65536;
  Result<RequestId> submit(GenerationRequest, std::shared_ptr<StreamSink>) override { return 1; }
  void cancel(RequestId) override {}
  void drain(double) override {}
  EngineStats stats() const override {
    EngineStats stats;
    stats.kv_blocks_total = kPages;
    stats.kv_blocks_used = kPages / 2;
    for (int i = 0; i < 16; ++i) stats.tenants.push_back({.tenant = "tenant-" + std::to_string(i)});
    return stats;
  }
  std::vector<KvPageState> page_map() const override {
    std::vector<KvPageState> map(kPages, KvPageState::kFree);
    std::fill_n(map.begin(), kPages / 2, KvPageState::kUsed);
    return map;
  }
  double expected_ttft_seconds(int64_t, const RequestClass&) const override { return 0; }
  const Model& model() const override { std::abort(); }
  const Tokenizer& tokenizer() const override { std::abort(); }
  int max_context() const override { return 4096; }
};

}  // namespace

int main(int argc, char** argv) {
  constexpr int kSamples = 9;
  std::vector<bench::Figure> figures;
  const auto add = [&](const char* name, double seconds, double scale, const char* unit, double bound,
                       const char* how) {
    figures.push_back({name, seconds * scale, unit, bound, bench::Better::kLower, kSamples, how});
  };
  MetricRegistry registry;
  ServeMetrics metrics(registry);
  double gap = 0.01;
  add("token gap observed",
      bench::median_seconds(kSamples, [&] { metrics.observe_token_gap(gap *= 1.0001); }), 1e9, "ns", 3000,
      "histogram and window of the last minute, one thread; median of batches");
  const RequestFacts facts = finished_request();
  auto log = LineLog::open({.path = "/dev/null"});
  if (!log) return 1;
  const ServedIdentity served{"smollm2-135m", "weights int4:32, activations int8, KV bf16", "127.0.0.1:8080"};
  add("request reported: counters, log line, four spans",
      bench::median_seconds(kSamples,
                            [&] {
                              metrics.count_outcome(facts);
                              (*log)->write(to_access_line(facts));
                              if (to_spans(facts, served).size() != 4) std::abort();
                            }),
      1e6, "us", 100, "on the thread that ends the request; the log's thread writes to /dev/null");
  const std::vector<Span> spans = to_spans(facts, served);
  add("request encoded for the collector",
      bench::median_seconds(kSamples,
                            [&] {
                              if (to_otlp_json({}, {}, spans).empty()) std::abort();
                            }),
      1e6, "us", 1000, "on the exporter's thread");
  const StillEngine engine;
  metrics.collect(engine.stats());
  add("/metrics",
      bench::median_seconds(kSamples,
                            [&] {
                              metrics.collect(engine.stats());
                              if (registry.to_text().empty()) std::abort();
                            }),
      1e3, "ms", 10, "16 tenants");
  const auto live = LiveState::start({"m", "p", 4096, 0}, engine, metrics);
  add("/debug/state",
      bench::median_seconds(kSamples,
                            [&] {
                              if (live->to_json(-1, "ok").empty()) std::abort();
                            }),
      1e3, "ms", 10, "65,536 pages, 16 tenants, the first samples");
  return bench::print(figures, bench::wants_json(argc, argv));
}
