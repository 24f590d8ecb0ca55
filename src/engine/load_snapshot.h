// What is known of an engine's queue at one moment, for forecasts on other threads. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/request_class.h"
#include "schedule/step_time.h"

namespace assay {

struct LoadSnapshot {
  std::vector<QueueRow> rows;          // by tenant and class
  std::vector<std::string> tenants;    // by index
  std::vector<double> tenant_service;  // by index
  StepTimeModel times;
  QueueForecast queue;

  // Adds to the row of its tenant and class.
  void count(const QueueRow& own);
  // A request that has arrived since.
  void add(int64_t prompt_tokens, const RequestClass& share);
  // From now to the first token of a request like this.
  double expected_ttft_seconds(int64_t prompt_tokens, const RequestClass& share) const;

 private:
  int32_t index_of(const std::string& tenant) const;  // -1: not known
};

}  // namespace assay
