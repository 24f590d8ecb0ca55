// How fast a model is by itself: prompt tokens per second and generated tokens per second at a given context.
// Runs the model directly (no scheduler, no sampling), so that what is measured is forward() and project() as
// the engine calls them. Random tokens: the speed does not depend on which.
//
// Each figure is the median of repeated runs; every run is kept. One run comes first that is not counted
// (caches, clock frequency, page faults). Thread safety: none; nothing else may use the model meanwhile.
// Failure: kInvalidArgument for shapes that the model cannot run, kResourceExhausted when the pages do not
// fit, kCancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"
#include "model/model.h"

namespace assay {

struct SpeedOptions {
  int prompt_tokens = 512;       // length of the prompt whose prefill is timed
  int context_tokens = 512;      // tokens before the first timed decode step
  int decode_steps = 32;         // steps of one decode run; each generates one token per sequence
  std::vector<int> batch = {1};  // sequences decoded together; one figure for each
  int repetitions = 5;           // counted runs of each figure
  int step_token_budget = 512;   // tokens of one prefill step; cut to the model's max_batch_tokens
  int page_tokens = 16;
  uint64_t seed = 1;
  // Called after every run with the share done, 0..1; return false to cancel.
  std::function<bool(double)> progress;
};

// Tokens per second of repeated runs.
struct SpeedFigure {
  double median = 0;
  double min = 0;
  double max = 0;
  std::vector<double> runs;
};

struct DecodeSpeed {
  int n_sequences = 1;
  SpeedFigure tokens_per_second;  // of all sequences together
};

struct Speed {
  SpeedFigure prefill_tokens_per_second;
  std::vector<DecodeSpeed> decode;  // as in SpeedOptions::batch
};

Result<Speed> measure_speed(Model& model, const SpeedOptions& options);

}  // namespace assay
