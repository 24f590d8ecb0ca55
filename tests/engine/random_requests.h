// Varied requests for the fake model: shared prefixes, seeds, stop strings, limits.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "engine/engine.h"
#include "engine/fake_model.h"

namespace assay::test {

inline std::vector<int32_t> random_prompt(Random& random, int64_t longest) {
  // A few long texts; prompts are beginnings of them, sometimes with an end of their own, so that pages are
  // shared, shared in part, or not at all.
  const uint64_t text = random.below(3);
  const int64_t n_shared = random.between(0, longest);
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < n_shared; ++i)
    prompt.push_back(static_cast<int32_t>(mix(text * 1000 + static_cast<uint64_t>(i)) % 128));
  const int64_t n_own = random.below(2) == 0 ? 0 : random.between(0, longest - n_shared);
  for (int64_t i = 0; i < n_own; ++i) prompt.push_back(static_cast<int32_t>(random.below(128)));
  if (prompt.empty()) prompt.push_back('a');
  return prompt;
}

inline GenerationRequest random_request(Random& random, int64_t longest_prompt, int64_t longest_answer) {
  GenerationRequest request;
  request.prompt = random_prompt(random, longest_prompt);
  request.max_tokens = static_cast<int>(random.between(1, longest_answer));
  SamplingParams& sampling = request.sampling;
  sampling.seed = random.next();
  sampling.temperature = random.below(3) == 0 ? 0.0F : static_cast<float>(random.uniform(0.2, 2));
  sampling.top_k = random.below(2) == 0 ? 0 : 20;
  sampling.top_p = random.below(2) == 0 ? 1.0F : 0.9F;
  if (random.below(3) == 0) {
    sampling.frequency_penalty = 0.5F;
    sampling.repetition_penalty = 1.2F;
  }
  sampling.top_logprobs = random.below(3) == 0 ? 3 : 0;
  for (const char* stop : {"ab", "é", "cde", "ea", "ddd", "bé"})
    if (random.below(6) == 0) request.stop.emplace_back(stop);
  request.ignore_end_of_generation = random.below(4) == 0;
  request.keep_special = random.below(4) == 0;
  return request;
}

}  // namespace assay::test
