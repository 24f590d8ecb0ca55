// Speed and memory of a model at one precision on one machine.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>

#include "numeric/precision.h"

namespace assay {

struct Samples {
  double median = 0;
  double low = 0;   // smallest
  double high = 0;  // largest
  int n = 0;
};
BOOST_DESCRIBE_STRUCT(Samples, (), (median, low, high, n))

struct SpeedRecord {
  static constexpr const char* kKind = "speed";
  static constexpr int kVersion = 1;

  Precision precision;
  std::string backend;  // "cpu avx512, 2 threads"
  int prompt_tokens = 0;
  int context_tokens = 0;             // already in the cache when decoding starts
  int concurrency = 0;                // sequences decoded together
  Samples prefill_tokens_per_second;  // one prompt
  Samples decode_tokens_per_second;   // all sequences together
  Samples ttft_seconds;               // prompt in, first token out, nothing else running
  Samples tpot_seconds;               // per sequence, at that concurrency
};
BOOST_DESCRIBE_STRUCT(SpeedRecord, (),
                      (precision, backend, prompt_tokens, context_tokens, concurrency,
                       prefill_tokens_per_second, decode_tokens_per_second, ttft_seconds, tpot_seconds))

struct MemoryRecord {
  static constexpr const char* kKind = "memory";
  static constexpr int kVersion = 1;

  uint64_t weight_bytes = 0;
  uint64_t kv_bytes = 0;         // pages for the workload: concurrency x (prompt + output) tokens
  uint64_t workspace_bytes = 0;  // activations
  double kv_bytes_per_token = 0;

  uint64_t resident_bytes() const { return weight_bytes + kv_bytes + workspace_bytes; }
};
BOOST_DESCRIBE_STRUCT(MemoryRecord, (), (weight_bytes, kv_bytes, workspace_bytes, kv_bytes_per_token))

}  // namespace assay
