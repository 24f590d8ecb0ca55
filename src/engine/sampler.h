// Logits in, one token out, for one sequence: holds what its parameters need to remember (token counts,
// random stream). The order of the steps is that of sampling.h. Log-probabilities are of the model's own
// distribution, before any step. Reproducible: same parameters with a seed, same prompt, same logits give the
// same tokens; greedy decoding uses no random numbers, every other token exactly one. Thread safety: one
// thread per Sampler; a workspace may be shared by samplers of one thread. Cost: two or three passes over the
// vocabulary; top-k and top-p select, they never sort the vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "engine/logprobs.h"
#include "engine/sampling.h"

namespace assay {

struct SampledToken {
  int32_t token = 0;
  std::optional<float> logprob;   // when asked for
  std::vector<TokenLogprob> top;  // top_logprobs of them, best first
};

class Sampler {
 public:
  // `params` must be valid (SamplingParams::validate). The prompt counts for the repetition penalty only.
  Sampler(SamplingParams params, std::span<const int32_t> prompt);

  // kCorrupt when the logits hold a NaN or a positive infinity, or nothing above negative infinity; the
  // sampler has then used no random number.
  Result<SampledToken> sample(std::span<const float> logits, SamplerWorkspace& workspace);

 private:
  bool changes_logits() const;
  void apply_bias_and_penalties(std::span<float> logits) const;
  int32_t draw(std::span<const float> logits, float max, SamplerWorkspace& workspace);

  SamplingParams params_;
  Random random_;
  std::unordered_map<int32_t, int32_t> generated_;  // token -> how often
  std::vector<int32_t> prompt_;                     // distinct; only for the repetition penalty
};

// Fills workspace.candidates with the tokens that top-k, top-p and min-p leave (temperature > 0), in an order
// that depends on the logits alone. The logits must be finite and `max` their largest (LogitRange).
void select_candidates(std::span<const float> logits, float max, const SamplingParams& params,
                       SamplerWorkspace& workspace);

}  // namespace assay
