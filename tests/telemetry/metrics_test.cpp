#include "telemetry/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace assay {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(MetricRegistry, text_follows_the_exposition_format) {
  MetricRegistry registry;
  Counter requests = registry.counter("x_requests_total", "Requests.", {{"route", "/a\"b\\c\n"}});
  requests.add();
  requests.add(2);
  Gauge running = registry.gauge("x_running", "Running now.");
  running.set(4);
  running.add(-1.5);
  constexpr std::array kBounds = {0.1, 1.0};
  Histogram seconds = registry.histogram("x_seconds", "Time.", kBounds);
  for (const double value : {0.05, 0.1, 0.5, 7.0}) seconds.observe(value);
  const std::string text = registry.to_text();
  EXPECT_TRUE(has_line(text, "# TYPE x_requests_total counter")) << text;
  EXPECT_TRUE(has_line(text, "# HELP x_requests_total Requests."));
  EXPECT_TRUE(has_line(text, R"(x_requests_total{route="/a\"b\\c\n"} 3)")) << text;
  EXPECT_TRUE(has_line(text, "x_running 2.5"));
  EXPECT_TRUE(has_line(text, R"(x_seconds_bucket{le="0.1"} 2)")) << text;
  EXPECT_TRUE(has_line(text, R"(x_seconds_bucket{le="1"} 3)"));
  EXPECT_TRUE(has_line(text, R"(x_seconds_bucket{le="+Inf"} 4)"));
  EXPECT_TRUE(has_line(text, "x_seconds_count 4"));
  EXPECT_TRUE(has_line(text, "x_seconds_sum 7.65"));
}

TEST(MetricRegistry, same_name_and_labels_are_the_same_metric) {
  MetricRegistry registry;
  registry.counter("x_total", "X.", {{"a", "1"}}).add();
  registry.counter("x_total", "X.", {{"a", "1"}}).add();
  registry.counter("x_total", "X.", {{"a", "2"}}).add();
  const std::string text = registry.to_text();
  EXPECT_TRUE(has_line(text, R"(x_total{a="1"} 2)")) << text;
  EXPECT_TRUE(has_line(text, R"(x_total{a="2"} 1)"));
}

TEST(MetricRegistry, values_kept_elsewhere_are_refreshed_when_read) {
  MetricRegistry registry;
  Gauge gauge = registry.gauge("x_live", "Live.");
  int value = 0;
  registry.on_collect([&, gauge]() mutable { gauge.set(++value); });
  EXPECT_TRUE(has_line(registry.to_text(), "x_live 1"));
  EXPECT_TRUE(has_line(registry.to_text(), "x_live 2"));
}

TEST(MetricRegistry, concurrent_updates_are_all_counted) {
  MetricRegistry registry;
  Counter counter = registry.counter("x_total", "X.");
  Histogram histogram = registry.histogram("x_seconds", "X.", latency_buckets());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&registry, counter, histogram, t]() mutable {
      for (int i = 0; i < 1000; ++i) {
        counter.add();
        histogram.observe(0.001 * t);
        if (i % 100 == 0) registry.gauge("x_thread", "X.", {{"t", std::to_string(t)}}).set(i);
        if (i % 250 == 0) {
          EXPECT_FALSE(registry.to_text().empty());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = registry.to_text();
  EXPECT_TRUE(has_line(text, "x_total 4000"));
  EXPECT_TRUE(has_line(text, "x_seconds_count 4000"));
  EXPECT_TRUE(has_line(text, R"(x_thread{t="3"} 900)"));
}

TEST(MetricRegistryDeathTest, names_prometheus_would_refuse_are_bugs) {
  MetricRegistry registry;
  EXPECT_DEATH(registry.gauge("9x", "X."), "is_valid_name");
  EXPECT_DEATH(registry.gauge("a-b", "X."), "is_valid_name");
  EXPECT_DEATH(registry.counter("x_requests", "X."), "_total");
  EXPECT_DEATH(registry.gauge("x", "X.", {{"__l", "v"}}), "is_valid_name");
  EXPECT_DEATH((registry.gauge("x", "X."), registry.histogram("x", "X.", latency_buckets())), "kind");
}

}  // namespace
}  // namespace assay
