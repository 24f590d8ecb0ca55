// A plan: what was chosen, the evidence for it, and the ladder to step down. Written by tune, read by serve
// and report.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "numeric/precision.h"
#include "records/contract.h"
#include "records/machine_record.h"
#include "records/provenance.h"
#include "records/quality_record.h"
#include "records/speed_record.h"

namespace assay {

// One bound of the contract that a candidate breaks.
struct BrokenBound {
  std::string bound;  // "quality.max_mean_kl"
  double limit = 0;
  double measured = 0;
  std::string unit;  // "nats", "s", "B", "tokens/s", ""
};
BOOST_DESCRIBE_STRUCT(BrokenBound, (), (bound, limit, measured, unit))

// For people: "max_mean_kl 0.081 nats > 0.05 nats".
std::string describe(const BrokenBound& bound);

// What the model answers greedily to the canary's prompt (engine/canary.h) at this precision.
struct CanaryRecord {
  std::string backend;  // the kernel table that answered
  std::vector<int32_t> tokens;
};
BOOST_DESCRIBE_STRUCT(CanaryRecord, (), (backend, tokens))

// Everything measured about one precision, and the verdict.
struct Candidate {
  static constexpr const char* kKind = "candidate";
  static constexpr int kVersion = 1;

  Precision precision;
  std::string effective;               // what really ran, in words
  std::optional<std::string> failure;  // why it could not be measured
  std::optional<QualityRecord> quality;
  std::optional<SpeedRecord> speed;
  std::optional<MemoryRecord> memory;
  std::optional<CanaryRecord> canary;  // absent in plans of earlier versions
  std::vector<BrokenBound> broken;
  bool holds = false;
  bool on_frontier = false;    // nothing else is at least as good in time, quality and memory
  double request_seconds = 0;  // machine time of one request of the workload; the cost
};
BOOST_DESCRIBE_STRUCT(Candidate, (),
                      (precision, effective, failure, quality, speed, memory, canary, broken, holds,
                       on_frontier, request_seconds))

struct ModelIdentity {
  std::string path;
  std::string architecture;
  uint64_t file_bytes = 0;
  std::string hash;  // xxh64 of the whole file, hexadecimal
};
BOOST_DESCRIBE_STRUCT(ModelIdentity, (), (path, architecture, file_bytes, hash))

struct Plan {
  static constexpr const char* kKind = "plan";
  static constexpr int kVersion = 1;

  ModelIdentity model;
  Contract contract;
  MachineRecord machine;
  Provenance provenance;
  // Indices into `candidates`: first the chosen one, then the rungs to step down, each cheaper than the one
  // before and within the contract's pressure bounds. Empty when no candidate holds.
  std::vector<int> ladder;
  std::vector<Candidate> candidates;  // in the order measured; the whole frontier is among them

  const Candidate* chosen() const {
    return ladder.empty() ? nullptr : &candidates.at(static_cast<size_t>(ladder.front()));
  }
};
BOOST_DESCRIBE_STRUCT(Plan, (), (model, contract, machine, provenance, ladder, candidates))

// Reads and checks a plan file: version, indices, and that it has a rung to serve.
Result<Plan> read_plan(const std::filesystem::path& path);

}  // namespace assay
