// A registry of counters, gauges and histograms, written in Prometheus' text format.
// Names and units follow Prometheus' conventions: base units (seconds, bytes, tokens), counters end in
// _total.
//
// Ownership: handles (Counter, Gauge, Histogram) are pointers into the registry and must not outlive it.
// Thread safety: everything may be called from any thread. Failure: none; a name that Prometheus would
// refuse, or one used for two kinds of metric, is a bug and CHECKed. Cost: add(), set() and observe() are an
// atomic or a short lock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

class Counter {
 public:
  void add(double amount = 1);  // amount >= 0

 private:
  friend class MetricRegistry;
  explicit Counter(void* metric) : metric_(metric) {}
  void* metric_;
};

class Gauge {
 public:
  void set(double value);
  void add(double amount);

 private:
  friend class MetricRegistry;
  explicit Gauge(void* metric) : metric_(metric) {}
  void* metric_;
};

class Histogram {
 public:
  void observe(double value);

 private:
  friend class MetricRegistry;
  explicit Histogram(void* metric) : metric_(metric) {}
  void* metric_;
};

using MetricLabels = std::map<std::string, std::string>;

class MetricRegistry {
 public:
  MetricRegistry();
  ~MetricRegistry();
  MetricRegistry(const MetricRegistry&) = delete;
  MetricRegistry& operator=(const MetricRegistry&) = delete;

  // The same name and labels give the same metric again.
  Counter counter(std::string_view name, std::string_view help, const MetricLabels& labels = {});
  Gauge gauge(std::string_view name, std::string_view help, const MetricLabels& labels = {});
  // `bounds` are the upper bounds of the buckets, ascending; +Inf is added.
  Histogram histogram(std::string_view name, std::string_view help, std::span<const double> bounds,
                      const MetricLabels& labels = {});

  // Called before every to_text(), to copy values that are kept elsewhere into gauges. Must not call the
  // registry's to_text().
  void on_collect(std::function<void()> refresh);

  // Text exposition format 0.0.4; see kMetricsContentType.
  std::string to_text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

// 1-2.5-5 steps from 0.1 ms to 100 s: latencies of tokens and requests.
std::span<const double> latency_buckets();

}  // namespace assay
