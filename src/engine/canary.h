// A short greedy answer to a fixed prompt: what a loaded model says before anyone else may ask it. A model
// that was loaded wrongly, or runs on broken kernels or memory, answers differently from a record of an
// earlier run, or not as it judges the same answer when it reads it.
//
// Failure: kInternal, saying which token differs, when the model contradicts the reference or itself;
// otherwise what the engine reports. Thread safety: any thread. Cost: a prompt of a dozen tokens and
// kCanaryTokens steps.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"

namespace assay {

inline constexpr int kCanaryTokens = 12;

struct CanaryAnswer {
  std::vector<int32_t> prompt;
  std::vector<int32_t> tokens;  // [kCanaryTokens]; goes on behind the model's end
};

// The fixed text in this tokenizer's tokens; independent of chat templates, which may contain today's date.
std::vector<int32_t> canary_prompt(const Tokenizer& tokenizer);

// Sequences, sampler and decode kernels, one token after the other.
Result<CanaryAnswer> ask_canary(Engine& engine);

// The same tokens as an earlier run at this precision and kernel table.
Result<void> match_canary(const CanaryAnswer& answer, const std::vector<int32_t>& reference);

// By another path, without a record: prompt and answer are read as one prompt (prefill, logits of every
// position), where each token of the answer must be the most likely one. Where prefill and decode run at
// different formats, the two may differ by rounding; then every token must be within `slack_nats` of the most
// likely one.
Result<void> reread_canary(Engine& engine, const CanaryAnswer& answer, double slack_nats);

}  // namespace assay
