#include "telemetry/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <sstream>

#include "base/check.h"

namespace assay {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_valid_name(std::string_view name) {
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

void check_labels(const MetricLabels& labels) {
  for (const auto& [name, value] : labels) CHECK(is_valid_name(name) && !name.starts_with("__"));
}

enum class Kind { kCounter, kGauge, kHistogram };

}  // namespace

struct MetricRegistry::State {
  mutable std::mutex mutex;
  prometheus::Registry registry;
  std::map<std::string, Kind, std::less<>> kinds;
  std::map<std::string, prometheus::Family<prometheus::Counter>*, std::less<>> counters;
  std::map<std::string, prometheus::Family<prometheus::Gauge>*, std::less<>> gauges;
  std::map<std::string, prometheus::Family<prometheus::Histogram>*, std::less<>> histograms;
  std::vector<std::function<void()>> refreshers;

  void claim(std::string_view name, Kind kind) {
    CHECK(is_valid_name(name));
    const auto [it, added] = kinds.emplace(std::string(name), kind);
    CHECK(it->second == kind);
  }
};

MetricRegistry::MetricRegistry() : state_(std::make_unique<State>()) {}
MetricRegistry::~MetricRegistry() = default;

Counter MetricRegistry::counter(std::string_view name, std::string_view help, const MetricLabels& labels) {
  CHECK(name.ends_with("_total"));
  check_labels(labels);
  const std::scoped_lock lock(state_->mutex);
  state_->claim(name, Kind::kCounter);
  auto& family = state_->counters[std::string(name)];
  if (family == nullptr) {
    family = &prometheus::BuildCounter()
                  .Name(std::string(name))
                  .Help(std::string(help))
                  .Register(state_->registry);
  }
  return Counter(&family->Add(labels));
}

Gauge MetricRegistry::gauge(std::string_view name, std::string_view help, const MetricLabels& labels) {
  check_labels(labels);
  const std::scoped_lock lock(state_->mutex);
  state_->claim(name, Kind::kGauge);
  auto& family = state_->gauges[std::string(name)];
  if (family == nullptr) {
    family =
        &prometheus::BuildGauge().Name(std::string(name)).Help(std::string(help)).Register(state_->registry);
  }
  return Gauge(&family->Add(labels));
}

Histogram MetricRegistry::histogram(std::string_view name, std::string_view help,
                                    std::span<const double> bounds, const MetricLabels& labels) {
  CHECK(std::is_sorted(bounds.begin(), bounds.end()));
  check_labels(labels);
  const std::scoped_lock lock(state_->mutex);
  state_->claim(name, Kind::kHistogram);
  auto& family = state_->histograms[std::string(name)];
  if (family == nullptr) {
    family = &prometheus::BuildHistogram()
                  .Name(std::string(name))
                  .Help(std::string(help))
                  .Register(state_->registry);
  }
  return Histogram(
      &family->Add(labels, prometheus::Histogram::BucketBoundaries(bounds.begin(), bounds.end())));
}

void MetricRegistry::on_collect(std::function<void()> refresh) {
  const std::scoped_lock lock(state_->mutex);
  state_->refreshers.push_back(std::move(refresh));
}

std::string MetricRegistry::to_text() const {
  std::vector<std::function<void()>> refreshers;
  {
    const std::scoped_lock lock(state_->mutex);
    refreshers = state_->refreshers;
  }
  for (const auto& refresh : refreshers) refresh();
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, state_->registry.Collect());
  return std::move(out).str();
}

void Counter::add(double amount) {
  CHECK(amount >= 0);
  static_cast<prometheus::Counter*>(metric_)->Increment(amount);
}

void Gauge::set(double value) {
  static_cast<prometheus::Gauge*>(metric_)->Set(value);
}

void Gauge::add(double amount) {
  static_cast<prometheus::Gauge*>(metric_)->Increment(amount);
}

void Histogram::observe(double value) {
  static_cast<prometheus::Histogram*>(metric_)->Observe(value);
}

std::span<const double> latency_buckets() {
  static constexpr std::array<double, 19> kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                                     0.025,  0.05,    0.1,    0.25,  0.5,    1,     2.5,
                                                     5,      10,      25,     50,    100};
  return kBounds;
}

}  // namespace assay
