// Many prompts continued at once by a model: the texts that measuring and calibrating run over.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"
#include "engine/loaded_model.h"

namespace assay {

struct ContinuationOptions {
  int n_tokens = 32;  // most tokens of each
  uint64_t seed = 1;  // of the first prompt; the others count on
  bool past_the_end = false;  // go on after an end-of-generation token
  std::function<bool(double)> progress;  // share done; return false to stop (kCancelled)
};

// The continuation of every prompt, sampled at temperature 1, top-p 0.95. Prompts must not be empty and fit the
// context with their continuation (the engine's error otherwise).
Result<std::vector<std::vector<int32_t>>> continue_all(const LoadedModel& model,
                                                       const std::vector<std::vector<int32_t>>& prompts,
                                                       const ContinuationOptions& options);

}  // namespace assay
