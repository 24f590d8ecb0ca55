// Time to choose one token, by settings and vocabulary. The bound: 16 sequences may spend a twentieth of a 50
// ms step on sampling from 49,152 tokens, 156 us each.
#include <vector>

#include "base/random.h"
#include "bench/figures.h"
#include "engine/sampler.h"

namespace {

using namespace assay;

// Like a language model's: a normal body and a few likely tokens.
std::vector<float> logits_of(int n_vocab) {
  Random random(1, "sampler_bench");
  std::vector<float> logits(static_cast<size_t>(n_vocab));
  for (float& logit : logits) logit = static_cast<float>(random.normal() * 2.5);
  for (int i = 0; i < 20; ++i) logits[random.below(logits.size())] = static_cast<float>(12 - 0.4 * i);
  return logits;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace assay::bench;
  constexpr int kSamples = 15;
  struct Setting {
    const char* name;
    SamplingParams params;
  };
  const Setting settings[] = {
      {"greedy", {.temperature = 0}},
      {"temperature 1", {.seed = 1}},
      {"top-k 40", {.top_k = 40, .seed = 1}},
      {"top-p 0.95", {.top_p = 0.95F, .seed = 1}},
      {"temperature 2, top-p 0.95 (flat)", {.temperature = 2, .top_p = 0.95F, .seed = 1}},
      {"min-p 0.05", {.min_p = 0.05F, .seed = 1}},
      {"top-p 0.95, penalties, 5 logprobs",
       {.top_p = 0.95F, .frequency_penalty = 0.1F, .repetition_penalty = 1.1F, .seed = 1, .top_logprobs = 5}},
  };
  std::vector<Figure> figures;
  for (const int n_vocab : {49152, 151936}) {
    const std::vector<float> logits = logits_of(n_vocab);
    for (const Setting& setting : settings) {
      Sampler sampler(setting.params, {});
      SamplerWorkspace workspace;
      bool failed = false;
      const double seconds = median_seconds(kSamples, [&] { failed |= !sampler.sample(logits, workspace); });
      if (failed) return 1;
      figures.push_back({fmt::format("one token of {}: {}", n_vocab, setting.name), seconds * 1e6, "us",
                         std::nullopt, Better::kLower, kSamples,
                         "median of batches of at least 20 ms; normal logits and 20 likely tokens"});
    }
  }
  return print(figures, wants_json(argc, argv));
}
