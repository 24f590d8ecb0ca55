// The sampler alone, on the logits of a toy vocabulary: what each setting leaves of the distribution, and how
// often a thousand draws take each word.
#include <fmt/core.h>

#include <string_view>
#include <vector>

#include "engine/sampler.h"

int main() {
  using namespace assay;
  const std::vector<std::string_view> words = {"the", "a", "cat", "dog", "ran", "slept", "quickly", "zebra"};
  const std::vector<float> logits = {4.0F, 3.6F, 3.1F, 3.0F, 1.5F, 1.2F, 0.1F, -2.0F};
  struct Setting {
    std::string_view name;
    SamplingParams params;
  };
  const Setting settings[] = {{"temperature 1", {.seed = 1}},
                              {"temperature 0.5", {.temperature = 0.5F, .seed = 1}},
                              {"top-k 3", {.top_k = 3, .seed = 1}},
                              {"top-p 0.8", {.top_p = 0.8F, .seed = 1}},
                              {"min-p 0.3", {.min_p = 0.3F, .seed = 1}},
                              {"greedy", {.temperature = 0}}};
  fmt::print("{:16}", "");
  for (const std::string_view word : words) fmt::print("{:>9}", word);
  for (const Setting& setting : settings) {
    if (const auto valid = setting.params.validate(static_cast<int32_t>(words.size())); !valid) return 1;
    Sampler sampler(setting.params, {});
    SamplerWorkspace workspace;
    std::vector<int> counts(words.size());
    for (int i = 0; i < 1000; ++i) {
      const auto sampled = sampler.sample(logits, workspace);
      if (!sampled) return 1;
      ++counts[static_cast<size_t>(sampled->token)];
    }
    fmt::print("\n{:16}", setting.name);
    for (const int count : counts) fmt::print("{:9}", count);
  }
  fmt::print("\n");
}
