// The flags that say how tokens are chosen and when an answer ends.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace assay {

struct SamplingOptions {
  // Small instruction models stay on the subject with these; --temperature 0 is greedy.
  SamplingParams params{.temperature = 0.7F, .top_p = 0.95F};
  uint64_t seed = 0;  // used when given
  bool seed_given = false;
  int max_tokens = -1;
  std::vector<std::string> stop;
  bool ignore_end = false;
};

// --temperature --top-k --top-p --min-p --repetition-penalty --presence-penalty --frequency-penalty --seed
// --max-tokens --stop --logprobs --ignore-eos
void add_sampling_options(CLI::App& app, SamplingOptions& options);

// The request for one answer. Without --seed, one is drawn, so that every answer can be repeated.
GenerationRequest request_of(const SamplingOptions& options, std::vector<int32_t> prompt);

}  // namespace assay
