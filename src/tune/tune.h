// From a contract to a plan: fingerprint the machine, check the checkpoint, record the reference, measure
// every candidate (quality, speed, memory), judge, choose, build the ladder. Only orchestration: all
// measuring lies in quality, engine and probe, all deciding in plan.
//
// Every finished measurement is written to `measurements` at once, under a key made of everything it depends
// on; a run that was interrupted, or killed, goes on from there. Thread safety: one run per measurements
// folder. Failure: kCancelled when the observer says stop; what was measured is kept.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"
#include "records/plan.h"

namespace assay {

struct TuneOptions {
  Contract contract;
  std::filesystem::path model;         // the checkpoint
  std::filesystem::path measurements;  // created when missing
  std::string isa = "auto";
  int threads = 0;
  bool pin_threads = false;  // see make_cpu_backend
  bool fresh = false;   // ignore earlier measurements
  std::string command;  // for the provenance
};

// Told what happens; called from the thread that runs tune().
class TuneObserver {
 public:
  virtual ~TuneObserver() = default;
  // One finished step, in words.
  virtual void on_note(const std::string& text) = 0;
  // The share of all work done, 0..1, and what is being done. Return false to stop.
  virtual bool on_progress(double share, const std::string& what) = 0;
  // A candidate is measured (or taken from an earlier run) and judged.
  virtual void on_candidate(const Candidate& candidate, bool from_earlier_run) = 0;
};

// The plan is returned also when nothing holds: its ladder is then empty.
Result<Plan> tune(const TuneOptions& options, TuneObserver& observer);

}  // namespace assay
