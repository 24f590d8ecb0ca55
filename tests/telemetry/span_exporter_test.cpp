#include "telemetry/span_exporter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/json/parse.hpp>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

namespace assay {
namespace {

// Stands for the collector: answers in the order given, then with 200, and can hold an answer back.
class Collector {
 public:
  explicit Collector(std::vector<Result<ExportAnswer>> answers = {}) : answers_(std::move(answers)) {}

  SpanExporter::Post post() {
    return [this](const std::string& body) -> Result<ExportAnswer> {
      std::unique_lock lock(mutex_);
      ++attempts_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return !held_; });
      Result<ExportAnswer> answer = ExportAnswer{};
      if (next_ < answers_.size()) answer = answers_[next_++];
      if (answer && answer->status == 200) names_.push_back(names_in(body));
      changed_.notify_all();
      return answer;
    };
  }
  void hold(bool held) {
    const std::scoped_lock lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  void wait_until(const std::function<bool(const Collector&)>& condition) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return condition(*this); }));
  }

  int attempts_ = 0;
  std::vector<std::vector<std::string>> names_;  // of the spans of each batch taken

 private:
  static std::vector<std::string> names_in(const std::string& body) {
    std::vector<std::string> names;
    const auto document = boost::json::parse(body);
    for (const auto& span :
         document.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans").as_array()) {
      names.emplace_back(span.at("name").as_string());
    }
    return names;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Result<ExportAnswer>> answers_;
  size_t next_ = 0;
  bool held_ = false;
};

std::vector<Span> spans(std::initializer_list<const char*> names) {
  std::vector<Span> made;
  for (const char* name : names) made.emplace_back().name = name;
  return made;
}

SpanExporterConfig quick() {
  SpanExporterConfig config;
  config.max_delay_seconds = 0.001;
  config.first_pause_seconds = 0.001;
  config.longest_pause_seconds = 0.004;
  return config;
}

TEST(SpanExporter, spans_arrive_in_order_and_batches_are_bounded) {
  Collector collector;
  SpanExporterConfig config = quick();
  config.max_batch_spans = 2;
  auto exporter = SpanExporter::start(config, collector.post());
  ASSERT_TRUE(exporter->offer(spans({"a", "b", "c"})));
  ASSERT_TRUE(exporter->offer(spans({"d"})));
  exporter->close(20);
  std::vector<std::string> all;
  for (const auto& batch : collector.names_) {
    EXPECT_LE(batch.size(), 2U);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(all, (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(exporter->stats().exported, 4);
  EXPECT_FALSE(exporter->offer(spans({"late"})));
}

TEST(SpanExporter, batch_waits_for_company_but_not_past_its_delay) {
  Collector collector;
  SpanExporterConfig config = quick();
  config.max_delay_seconds = 0.3;
  auto exporter = SpanExporter::start(config, collector.post());
  exporter->offer(spans({"a"}));
  exporter->offer(spans({"b"}));
  collector.wait_until([](const Collector& seen) { return !seen.names_.empty(); });
  EXPECT_EQ(collector.names_.front(), (std::vector<std::string>{"a", "b"}));
}

TEST(SpanExporter, retryable_answers_are_tried_again_and_others_are_not) {
  const auto unreachable = fail(ErrorCode::kNetwork, "x", "refused");
  Collector collector({ExportAnswer{503}, ExportAnswer{429, 0.002}, ExportAnswer{502}, unreachable,
                       ExportAnswer{200}, ExportAnswer{400}, ExportAnswer{200}});
  auto exporter = SpanExporter::start(quick(), collector.post());
  exporter->offer(spans({"kept"}));
  collector.wait_until([](const Collector& seen) { return seen.attempts_ == 5; });
  exporter->offer(spans({"refused", "too"}));
  collector.wait_until([](const Collector& seen) { return seen.attempts_ == 6; });
  exporter->offer(spans({"after"}));
  exporter->close(20);
  EXPECT_EQ(collector.attempts_, 7);
  EXPECT_EQ(exporter->stats().exported, 2);
  EXPECT_EQ(exporter->stats().dropped_refused, 2);
  EXPECT_EQ(exporter->stats().dropped_unreachable, 0);
}

TEST(SpanExporter, attempts_run_out) {
  SpanExporterConfig config = quick();
  config.max_attempts = 3;
  Collector collector({ExportAnswer{503}, ExportAnswer{503}, ExportAnswer{503}, ExportAnswer{200}});
  auto exporter = SpanExporter::start(config, collector.post());
  exporter->offer(spans({"lost"}));
  collector.wait_until([](const Collector& seen) { return seen.attempts_ == 3; });
  exporter->offer(spans({"next"}));
  exporter->close(20);
  EXPECT_EQ(exporter->stats().dropped_unreachable, 1);
  EXPECT_EQ(exporter->stats().exported, 1);
}

TEST(SpanExporter, full_queue_drops_whole_requests_and_counts_them) {
  Collector collector;
  SpanExporterConfig config = quick();
  config.max_queued_spans = 3;
  auto exporter = SpanExporter::start(config, collector.post());
  collector.hold(true);
  exporter->offer(spans({"in flight"}));
  collector.wait_until([](const Collector& seen) { return seen.attempts_ == 1; });
  EXPECT_TRUE(exporter->offer(spans({"a", "b"})));
  EXPECT_FALSE(exporter->offer(spans({"c", "d"})));
  EXPECT_TRUE(exporter->offer(spans({"e"})));
  EXPECT_EQ(exporter->stats().dropped_queue_full, 2);
  collector.hold(false);
  exporter->close(20);
  EXPECT_EQ(exporter->stats().exported, 4);
}

TEST(SpanExporter, close_gives_up_on_a_collector_that_is_gone) {
  std::vector<Result<ExportAnswer>> answers(100, fail(ErrorCode::kNetwork, "x", "refused"));
  Collector collector(answers);
  SpanExporterConfig config = quick();
  config.first_pause_seconds = 1000;
  config.longest_pause_seconds = 1000;
  auto exporter = SpanExporter::start(config, collector.post());
  exporter->offer(spans({"a"}));
  collector.wait_until([](const Collector& seen) { return seen.attempts_ == 1; });
  exporter->offer(spans({"b", "c"}));
  exporter->close(20);  // would hang here if the pause were waited for
  EXPECT_EQ(exporter->stats().dropped_unreachable, 3);
  EXPECT_EQ(exporter->stats().exported, 0);
}

}  // namespace
}  // namespace assay
