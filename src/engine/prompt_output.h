// What a request wants to know of its prompt itself. Such a prompt is computed whole: the prefix cache, which
// holds keys and values but neither logits nor hidden states, is not read. Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/sampling.h"

namespace assay {

// How the final hidden states (after the last norm) of the prompt's tokens become one vector.
enum class Pooling { kNone, kMean, kLast, kCount };

struct PromptOutput {
  bool logprobs = false;
  int top_logprobs = 0;  // with logprobs: and that many best alternatives, 0..20
  Pooling pooling = Pooling::kNone;

  bool wanted() const { return logprobs || pooling != Pooling::kNone; }
};

// Of the model's own distribution after the tokens before it.
struct PromptTokenLogprob {
  int32_t token = 0;
  float logprob = 0;
  std::vector<TokenLogprob> top;  // best first
};

}  // namespace assay
