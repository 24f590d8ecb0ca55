#include "serve/live_state.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/build_info.h"
#include "base/clock.h"
#include "serve/live_sample.h"

namespace assay {
namespace {

namespace json = boost::json;

constexpr size_t kKeptSamples = 300;  // five minutes
constexpr int64_t kMaxCells = 4096;
constexpr std::array kShown = {0.5, 0.95, 0.99};

double unix_seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class SampledLiveState final : public LiveState {
 public:
  SampledLiveState(LiveIdentity identity, const Engine& engine, const ServeMetrics& metrics)
      : identity_(std::move(identity)), engine_(engine), metrics_(metrics), last_(engine.stats()) {
    thread_ = std::thread([this] { sample_each_second(); });
  }
  ~SampledLiveState() override {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    stopped_.notify_all();
    thread_.join();
  }

  std::string to_json(int64_t since, std::string_view status) const override {
    const EngineStats stats = engine_.stats();
    json::object out;
    out["server"] = server(status);
    out["now"] = now(stats);
    out["tenants"] = tenants(stats);
    json::object outcomes;
    for (const auto& [outcome, count] : metrics_.outcomes()) outcomes[outcome] = count;
    out["outcomes"] = std::move(outcomes);
    const PageCells map = to_cells(engine_.page_map(), kMaxCells);
    out["kv_map"] = json::object{{"pages_per_cell", map.pages_per_cell}, {"cells", map.cells}};
    out["samples"] = samples(since);
    return json::serialize(out);
  }

 private:
  void sample_each_second() {
    std::unique_lock lock(mutex_);
    auto next = std::chrono::steady_clock::now();
    Stopwatch since_last;
    while (true) {
      next += std::chrono::seconds(1);
      if (stopped_.wait_until(lock, next, [this] { return stop_; })) return;
      const EngineStats stats = engine_.stats();
      LiveSample sample = make_sample(unix_seconds_now(), since_last.seconds(), last_, stats);
      since_last.restart();
      sample.first_token = metrics_.recent_first_tokens().quantiles(kShown);
      sample.token_gap = metrics_.recent_token_gaps().quantiles(kShown);
      last_ = stats;
      samples_.push_back(to_row(sample));
      if (samples_.size() > kKeptSamples) {
        samples_.pop_front();
        ++first_number_;
      }
      // A machine that slept: no burst of samples to make up for it.
      next = std::max(next, std::chrono::steady_clock::now() - std::chrono::seconds(1));
    }
  }

  json::object server(std::string_view status) const {
    const BuildInfo build = build_info();
    return {{"status", json::string(status)},
            {"model", identity_.model},
            {"precision", identity_.precision},
            {"context", identity_.context},
            {"version", json::string(build.version)},
            {"commit", json::string(build.commit)},
            {"uptime_seconds", std::max<int64_t>(0, static_cast<int64_t>(unix_seconds_now()) -
                                                        identity_.created_unix_seconds)}};
  }

  static json::object now(const EngineStats& stats) {
    return {{"running", stats.running},
            {"waiting", stats.waiting},
            {"expected_queue_seconds", stats.expected_queue_seconds},
            {"kv_blocks_total", stats.kv_blocks_total},
            {"kv_blocks_used", stats.kv_blocks_used},
            {"kv_blocks_cached", stats.kv_blocks_cached},
            {"kv_page_tokens", stats.kv_page_tokens},
            {"kv_fragmentation_ratio", fragmentation_ratio(stats)},
            {"prefix_hit_ratio", prefix_hit_ratio(stats)},
            {"batch_tokens", stats.last_batch_tokens},
            {"batch_sequences", stats.last_batch_sequences},
            {"preemptions", stats.preemptions_total},
            {"prompt_tokens", stats.prompt_tokens_total},
            {"output_tokens", stats.generated_tokens_total}};
  }

  static json::array tenants(const EngineStats& stats) {
    json::array out;
    for (const TenantStats& tenant : stats.tenants) {
      out.push_back(json::object{{"tenant", shown_tenant(tenant.tenant)},
                                 {"running", tenant.running},
                                 {"waiting", tenant.waiting},
                                 {"kv_blocks", tenant.kv_blocks},
                                 {"prompt_tokens", tenant.prompt_tokens_total},
                                 {"output_tokens", tenant.generated_tokens_total}});
    }
    return out;
  }

  json::object samples(int64_t since) const {
    const std::scoped_lock lock(mutex_);
    const int64_t end = first_number_ + std::ssize(samples_);
    const int64_t first = std::clamp(std::min(since, end) + 1, first_number_, end);
    json::array rows;
    for (int64_t number = first; number < end; ++number) {
      rows.push_back(samples_[static_cast<size_t>(number - first_number_)]);
    }
    return {{"first", first}, {"columns", sample_columns()}, {"rows", std::move(rows)}};
  }

  const LiveIdentity identity_;
  const Engine& engine_;
  const ServeMetrics& metrics_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  std::deque<json::array> samples_;
  int64_t first_number_ = 0;  // of the oldest kept sample
  EngineStats last_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<LiveState> LiveState::start(LiveIdentity identity, const Engine& engine,
                                            const ServeMetrics& metrics) {
  return std::make_unique<SampledLiveState>(std::move(identity), engine, metrics);
}

PageCells to_cells(const std::vector<KvPageState>& pages, int64_t max_cells) {
  constexpr std::string_view kLetters = "fcus";  // in order of weight, as the enumerators
  static_assert(kLetters.size() == static_cast<size_t>(KvPageState::kCount));
  PageCells out;
  const auto n = std::ssize(pages);
  out.pages_per_cell = std::max<int64_t>(1, (n + max_cells - 1) / max_cells);
  for (int64_t first = 0; first < n; first += out.pages_per_cell) {
    const auto begin = pages.begin() + first;
    const auto end = pages.begin() + std::min(n, first + out.pages_per_cell);
    out.cells += kLetters[static_cast<size_t>(*std::max_element(begin, end))];
  }
  return out;
}

}  // namespace assay
