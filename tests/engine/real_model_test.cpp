// The engine over a real model: batched, chunked, preempted and cached answers must be those of one request
// alone, bit for bit, and greedy text must be what the model says.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "base/file.h"
#include "base/random.h"
#include "engine/engine.h"
#include "engine/loaded_model.h"

namespace assay {
namespace {

class RealModel : public testing::Test {
 protected:
  void SetUp() override {
    path_ = assay_home() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf";
    if (!std::filesystem::exists(path_)) GTEST_SKIP() << path_ << " is absent: assay pull smollm2-135m";
  }

  LoadedModel load(const char* precision, int max_context = 512) {
    auto loaded = LoadedModel::load(path_, *parse_precision(precision), *make_cpu_backend(),
                                    {.max_batch_tokens = 128, .max_context = max_context});
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message();
    return std::move(*loaded);
  }

  static std::unique_ptr<Engine> engine_of(const LoadedModel& loaded, EngineConfig config) {
    auto engine = Engine::create(loaded.model(), loaded.tokenizer(), config);
    EXPECT_TRUE(engine.has_value()) << engine.error().message();
    return std::move(*engine);
  }

  static GenerationRequest request(const LoadedModel& loaded, int number) {
    static const char* const kTexts[] = {
        "The capital of France is",
        "Once upon a time there was a small robot who lived in a lighthouse by the sea. Every morning it",
        "def fibonacci(n):\n    ",
        "1, 2, 3, 4, 5,",
        "Die Hauptstadt von Deutschland ist",
        "Once upon a time there was a small robot who lived in a lighthouse by the sea. Every evening the",
    };
    GenerationRequest request;
    request.prompt = loaded.tokenizer()->encode(kTexts[number % 6]);
    request.max_tokens = 12 + number;
    request.ignore_end_of_generation = true;
    request.sampling.temperature = number % 2 == 0 ? 0.0F : 0.9F;
    request.sampling.top_p = 0.95F;
    request.sampling.seed = static_cast<uint64_t>(number);
    request.sampling.logprobs = true;
    return request;
  }

  std::filesystem::path path_;
};

TEST_F(RealModel, batched_chunked_and_preempted_answers_are_those_of_one_alone) {
  const LoadedModel loaded = load("w=file a=int8/bf16 kv=bf16", 128);
  std::vector<GeneratedText> alone;
  {
    const auto engine =
        engine_of(loaded, {.max_sequences = 1, .step_token_budget = 128, .prefix_cache = false});
    for (int i = 0; i < 6; ++i) alone.push_back(*generate(*engine, request(loaded, i)));
  }
  // Eight pages hold one context of 128; six sequences of two to four pages in steps of seven tokens need
  // more.
  const uint64_t budget = 8 * loaded.model()->kv_layout(16).block_bytes();
  const auto engine =
      engine_of(loaded, {.kv_budget_bytes = budget, .max_sequences = 6, .step_token_budget = 7});
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 2; ++repeat) {  // the second finds its prefix in the cache
        const auto text = generate(*engine, request(loaded, i));
        ASSERT_TRUE(text.has_value()) << text.error().message();
        EXPECT_EQ(text->tokens, alone[static_cast<size_t>(i)].tokens) << i;
        EXPECT_EQ(text->logprobs, alone[static_cast<size_t>(i)].logprobs) << i;
        EXPECT_EQ(text->text, alone[static_cast<size_t>(i)].text) << i;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(engine->stats().prompt_tokens_cached_total, 0);
  EXPECT_GT(engine->stats().preemptions_total, 0);
}

TEST_F(RealModel, second_turn_from_cached_pages_is_that_of_a_cold_engine) {
  const LoadedModel loaded = load("w=file a=f32 kv=int8");
  const auto ask = [&](Engine& engine, std::vector<int32_t> prompt) {
    GenerationRequest request;
    request.prompt = std::move(prompt);
    request.max_tokens = 24;
    request.ignore_end_of_generation = true;
    request.sampling.temperature = 0;
    request.sampling.logprobs = true;
    return *generate(engine, request);
  };
  const auto warm = engine_of(loaded, {.max_sequences = 1, .step_token_budget = 64});
  std::vector<int32_t> prompt =
      loaded.tokenizer()->encode("List three colours of the rainbow, and why they differ:");
  const GeneratedText first = ask(*warm, prompt);
  prompt.insert(prompt.end(), first.tokens.begin(), first.tokens.end());
  for (const int32_t id : loaded.tokenizer()->encode("\nNow three animals:")) prompt.push_back(id);
  const GeneratedText second = ask(*warm, prompt);
  EXPECT_GE(second.completion.usage.cached_prompt_tokens, 32);
  const auto cold = engine_of(loaded, {.max_sequences = 1, .step_token_budget = 64, .prefix_cache = false});
  const GeneratedText expected = ask(*cold, prompt);
  EXPECT_EQ(expected.completion.usage.cached_prompt_tokens, 0);
  EXPECT_EQ(second.tokens, expected.tokens);
  EXPECT_EQ(second.logprobs, expected.logprobs);
}

TEST_F(RealModel, greedy_chat_answer_names_the_capital) {
  const LoadedModel loaded = load("w=f32 a=f32 kv=f32");
  const auto engine = engine_of(loaded, {.max_sequences = 1, .step_token_budget = 64});
  const auto rendered = loaded.render({{"user", "What is the capital of France?"}});
  ASSERT_TRUE(rendered.has_value()) << rendered.error().message();
  GenerationRequest request;
  request.prompt = loaded.encode_prompt(*rendered);
  request.max_tokens = 32;
  request.sampling.temperature = 0;
  const auto text = generate(*engine, request);
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(text->text, "The capital of France is Paris.");
  EXPECT_EQ(text->completion.reason, FinishReason::kStop);
}

}  // namespace
}  // namespace assay
