// How the next token is chosen. Order of the steps, as llama.cpp's and vLLM's users expect: logit bias,
// penalties, temperature, top-k, top-p, min-p, draw. Temperature 0 is greedy (ties: lowest id). Plain values.
// validate() refuses NaN, infinities and values out of range, naming the field.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"

namespace assay {

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;  // natural logarithm
};

struct SamplingParams {
  float temperature = 1.0F;         // [0, 100]
  int top_k = 0;                    // 0: off
  float top_p = 1.0F;               // (0, 1]
  float min_p = 0.0F;               // [0, 1]
  float presence_penalty = 0.0F;    // [-2, 2], over generated tokens (OpenAI)
  float frequency_penalty = 0.0F;   // [-2, 2], over generated tokens (OpenAI)
  float repetition_penalty = 1.0F;  // (0, 10], over prompt and generated tokens (Keskar et al. 2019)
  std::vector<std::pair<int32_t, float>> logit_bias;  // bias in [-100, 100]
  std::optional<uint64_t> seed;                       // same seed, same tokens; none: drawn from the system
  bool logprobs = false;                              // report the chosen token's log-probability
  int top_logprobs = 0;                               // and that many best alternatives, 0..20

  Result<void> validate(int32_t n_vocab) const;
};

}  // namespace assay
