// The same tokens and likelihoods as llama.cpp with f32 activations (data/*_llama_cpp.json tell how they were
// recorded). Here a part, to stay quick; bench/model/parity_bench.cpp runs all of it.
#include <gtest/gtest.h>

#include "model/json_data.h"
#include "model/window_likelihood.h"

namespace assay {
namespace {

// Greedy paths may part where the best two logits lie closer than two f32 computations do.
constexpr float kTie = 1e-3F;

void expect_same_continuations(Model& model, const boost::json::value& data, size_t n_prompts, int n_tokens) {
  const auto& prompts = data.at("greedy").at("prompts").as_array();
  for (size_t i = 0; i < std::min(n_prompts, prompts.size()); ++i) {
    SCOPED_TRACE(prompts[i].at("prompt").as_string().c_str());
    const auto expected = test::ids_of(prompts[i].at("ids"));
    const auto found = test::continue_greedily(model, test::ids_of(prompts[i].at("prompt_ids")), n_tokens);
    for (size_t k = 0; k < found.tokens.size(); ++k) {
      if (found.tokens[k] != expected[k]) {
        EXPECT_LT(found.gaps[k], kTie)
            << "token " << k << " is " << found.tokens[k] << ", llama.cpp has " << expected[k];
        break;
      }
    }
  }
}

TEST(LlamaCppParity, stories_greedy_continuations_are_identical) {
  SKIP_WITHOUT(test::stories_path());
  const auto model = test::load_model(test::stories_path(), "w=f32 a=f32 kv=f32");
  expect_same_continuations(*model, test::read_data("stories_llama_cpp.json"), 3, 64);
}

TEST(LlamaCppParity, smollm_greedy_continuations_are_identical) {
  SKIP_WITHOUT(test::smollm_path());
  const auto model = test::load_model(test::smollm_path(), "w=file a=f32 kv=f32");
  expect_same_continuations(*model, test::read_data("smollm2_llama_cpp.json"), 5, 12);
}

TEST(LlamaCppParity, smollm_perplexity_of_a_window_is_within_a_thousandth) {
  SKIP_WITHOUT(test::smollm_path());
  const auto model = test::load_model(test::smollm_path(), "w=file a=f32 kv=f32");
  const auto data = test::read_data("smollm2_llama_cpp.json");
  const auto tokens = test::ids_of(data.at("perplexity").at("tokens"));
  const double nll = test::window_nll(*model, std::span(tokens).first(512));
  const double expected = data.at("perplexity").at("nll_after_window").at(0).to_number<double>();
  EXPECT_NEAR(std::exp(nll) / std::exp(expected), 1, 1e-3) << nll << " against " << expected;
}

}  // namespace
}  // namespace assay
