#include "engine/canary.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>

#include "engine/fake_model.h"

namespace assay {
namespace {

// Answers at once: greedy tokens 10, 11, 12, ...; reads a prompt as told.
class ScriptedEngine final : public Engine {
 public:
  size_t disagrees_at = 1000;  // position of the prompt whose most likely token is another
  float behind = 0.5F;         // and by how many nats
  float logprob = -0.25F;
  int context = 512;
  FinishReason reason = FinishReason::kLength;

  Result<RequestId> submit(GenerationRequest request, std::shared_ptr<StreamSink> sink) override {
    std::vector<PromptTokenLogprob> read;
    for (size_t i = 1; i < request.prompt.size() && request.prompt_output.logprobs; ++i) {
      const bool other = i == disagrees_at;
      read.push_back({request.prompt[i],
                      other ? -0.25F - behind : -0.25F,
                      {{other ? request.prompt[i] + 1 : request.prompt[i], -0.25F}}});
    }
    if (!read.empty()) sink->on_prompt(read);
    for (int i = 0; i < request.max_tokens; ++i) sink->on_token({.token = 10 + i, .logprob = logprob});
    sink->on_finish({.reason = reason});
    return ++last_id_;
  }
  void cancel(RequestId) override {}
  void drain(double) override {}
  EngineStats stats() const override { return {}; }
  std::vector<KvPageState> page_map() const override { return {}; }
  double expected_ttft_seconds(int64_t, const RequestClass&) const override { return 0; }
  const Model& model() const override { std::abort(); }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  int max_context() const override { return context; }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_ = test::fake_tokenizer();
  RequestId last_id_ = 0;
};

TEST(Canary, SoundModel_agreesWithItselfAndItsRecord) {
  ScriptedEngine engine;
  const auto answer = ask_canary(engine);
  ASSERT_TRUE(answer) << answer.error().message();
  ASSERT_EQ(answer->tokens.size(), size_t{kCanaryTokens});
  EXPECT_EQ(answer->tokens.front(), 10);
  EXPECT_TRUE(reread_canary(engine, *answer, 0));
  EXPECT_TRUE(match_canary(*answer, answer->tokens));
}

TEST(Canary, OneOtherToken_isNamed) {
  ScriptedEngine engine;
  const auto answer = ask_canary(engine);
  auto reference = answer->tokens;
  reference[3] = 99;
  const auto matched = match_canary(*answer, reference);
  ASSERT_FALSE(matched);
  EXPECT_NE(matched.error().message().find("token 3 "), std::string::npos) << matched.error().message();
}

TEST(Canary, ReadOtherwise_isRefusedBeyondTheSlack) {
  ScriptedEngine engine;
  const auto answer = ask_canary(engine);
  for (const size_t i : {size_t{0}, size_t{5}, size_t{kCanaryTokens - 1}}) {
    engine.disagrees_at = answer->prompt.size() + i;
    const auto read = reread_canary(engine, *answer, 0);
    ASSERT_FALSE(read) << i;
    EXPECT_NE(read.error().message().find("token " + std::to_string(i) + " "), std::string::npos);
    EXPECT_FALSE(reread_canary(engine, *answer, 0.4));
    EXPECT_TRUE(reread_canary(engine, *answer, 0.6));
  }
  engine.disagrees_at = answer->prompt.size() - 1;
  EXPECT_TRUE(reread_canary(engine, *answer, 0)) << "the prompt itself need not be likely";
}

TEST(Canary, UnsoundProbabilities_areRefused) {
  ScriptedEngine engine;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), 0.5F, -std::numeric_limits<float>::infinity()}) {
    engine.logprob = bad;
    EXPECT_FALSE(ask_canary(engine)) << bad;
  }
  engine.logprob = -1;
  engine.reason = FinishReason::kCancelled;
  EXPECT_FALSE(ask_canary(engine));
}

}  // namespace
}  // namespace assay
