// What a sequence's tokens must obey, e.g. a grammar. The engine masks the logits before anything else looks
// at them, so that greedy decoding, sampling and log-probabilities all see the masked distribution, and tells
// which token was chosen. One object per sequence; preemption does not disturb it, since what was sampled
// stays. Thread safety: made by the submitting thread, then only the step thread. Failure: the sequence ends
// with kError. Cost: a step waits for mask(), which should take well under a millisecond.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"

namespace assay {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // Sets the logits of tokens that may not follow to negative infinity. [n_vocab]
  virtual Result<void> mask(std::span<float> logits) = 0;
  // The token that was chosen; never one that ends generation.
  virtual Result<void> accept(int32_t token) = 0;
  // Nothing may follow: the sequence ends with kStop without another step.
  virtual bool complete() = 0;
};

}  // namespace assay
