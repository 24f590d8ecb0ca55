// A contract: what must hold, written in TOML. docs/contract.md explains every key.
//
//   model = "smollm2-135m"
//   [quality]     max_mean_kl = 0.05, max_p999_kl, min_top1 = 0.9, max_perplexity_increase = 0.02, text =
//   "FILE" [latency]     ttft = "500 ms", tpot = "30 ms", e2e = "5 s" [throughput]  prefill = 200, decode =
//   40                       (tokens per second) [memory]      resident = "1 GiB" [workload]    prompt_tokens
//   = 256, output_tokens = 128, concurrency = 1 [pressure]    max_mean_kl = 0.2, min_top1 = 0.8 (what the
//   ladder may step down to) [search]      candidates = ["w=file a=int8 kv=bf16"], choose = "time" |
//   "memory", seed = 1
//
// Strict: unknown keys, wrong types, missing units, bounds that nothing can meet (a KL below zero, top-1
// above one, a pressure bound tighter than the contract's) are errors that name the key and the line.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "numeric/precision.h"

namespace assay {

struct QualityBounds {
  std::optional<double> max_mean_kl;  // nats per token
  std::optional<double> max_p999_kl;
  std::optional<double> min_top1;                 // share, 0..1
  std::optional<double> max_perplexity_increase;  // share; 0.02 is 2 %

  bool any() const { return max_mean_kl || max_p999_kl || min_top1 || max_perplexity_increase; }
};
BOOST_DESCRIBE_STRUCT(QualityBounds, (), (max_mean_kl, max_p999_kl, min_top1, max_perplexity_increase))

struct LatencyBounds {
  std::optional<double> ttft_seconds;
  std::optional<double> tpot_seconds;
  std::optional<double> e2e_seconds;
};
BOOST_DESCRIBE_STRUCT(LatencyBounds, (), (ttft_seconds, tpot_seconds, e2e_seconds))

struct ThroughputBounds {
  std::optional<double> prefill_tokens_per_second;
  std::optional<double> decode_tokens_per_second;
};
BOOST_DESCRIBE_STRUCT(ThroughputBounds, (), (prefill_tokens_per_second, decode_tokens_per_second))

struct MemoryBounds {
  std::optional<uint64_t> resident_bytes;
};
BOOST_DESCRIBE_STRUCT(MemoryBounds, (), (resident_bytes))

struct Workload {
  int prompt_tokens = 256;
  int output_tokens = 128;
  int concurrency = 1;
};
BOOST_DESCRIBE_STRUCT(Workload, (), (prompt_tokens, output_tokens, concurrency))

struct Search {
  std::vector<Precision> candidates;  // empty: the built-in set
  std::string choose = "time";        // cheapest by machine time per request, or by "memory"
  uint64_t seed = 1;
};
BOOST_DESCRIBE_STRUCT(Search, (), (candidates, choose, seed))

struct Contract {
  static constexpr const char* kKind = "contract";
  static constexpr int kVersion = 1;

  std::string model;                // path or short name; may be empty when given on the command line
  std::optional<std::string> text;  // quality text; absent: the built-in prompts
  QualityBounds quality;
  LatencyBounds latency;
  ThroughputBounds throughput;
  MemoryBounds memory;
  Workload workload;
  std::optional<QualityBounds> pressure;
  Search search;
};
BOOST_DESCRIBE_STRUCT(Contract, (),
                      (model, text, quality, latency, throughput, memory, workload, pressure, search))

// `where` is the file's name, for messages. A relative `text` stays relative; the caller resolves it.
Result<Contract> parse_contract(std::string_view toml, std::string_view where);
Result<Contract> read_contract(const std::filesystem::path& path);

}  // namespace assay
