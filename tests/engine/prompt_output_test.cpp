// What requests want to know of their prompt, against the distributions that the fake model gives by closed
// form (fake_model.h): whatever chunks, preemption and neighbours, each position is read once and in order.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/clock.h"
#include "base/random.h"
#include "engine/fake_model.h"
#include "engine/random_requests.h"
#include "engine/recording_sink.h"
#include "engine/request_check.h"
#include "engine/step_loop.h"

namespace assay {
namespace {

using test::FakeModel;
using test::FakeOptions;
using test::RecordingSink;

uint64_t hash_after(const std::vector<int32_t>& tokens, size_t n) {
  uint64_t hash = 0;
  for (size_t p = 0; p < n; ++p) hash = test::fold(hash, tokens[p], static_cast<int64_t>(p), 0);
  return hash;
}

double logprob_by_definition(const std::vector<float>& logits, int32_t token) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return static_cast<double>(logits[static_cast<size_t>(token)]) - std::log(sum);
}

struct Bench {
  explicit Bench(ScheduleConfig schedule)
      : loop(model, *tokenizer, std::move(*KvPool::create(model.kv_layout(16), schedule.total_blocks)),
             SwapSpace(), {.schedule = schedule}, clock) {}

  std::shared_ptr<RecordingSink> add(GenerationRequest request) {
    const auto longest = check_request(request, {test::kVocab, 256});
    if (!longest) ADD_FAILURE() << longest.error().message();
    auto sink = std::make_shared<RecordingSink>();
    loop.add(std::make_unique<Sequence>(++last_id, std::move(request), sink, *tokenizer, loop.pool(),
                                        longest.value_or(1), 0.0));
    return sink;
  }
  void run() {
    for (int guard = 0; !loop.idle() && guard < 10000; ++guard) loop.step();
    EXPECT_TRUE(loop.idle());
  }

  std::shared_ptr<const Tokenizer> tokenizer = test::fake_tokenizer();
  VirtualClock clock;
  FakeModel model;
  StepLoop loop;
  RequestId last_id = 0;
};

ScheduleConfig schedule_of(int64_t budget, int64_t max_running, int64_t blocks) {
  return {.step_token_budget = budget, .max_running = max_running, .page_tokens = 16, .total_blocks = blocks};
}

void expect_prompt_scores(const RecordingSink& sink, const GenerationRequest& request) {
  ASSERT_EQ(sink.prompt.size() + 1, request.prompt.size());
  for (size_t i = 0; i < sink.prompt.size(); ++i) {
    const std::vector<float> logits = test::fake_logits(hash_after(request.prompt, i + 1), 0, 0);
    const PromptTokenLogprob& told = sink.prompt[i];
    ASSERT_EQ(told.token, request.prompt[i + 1]);
    EXPECT_NEAR(told.logprob, logprob_by_definition(logits, told.token), 2e-5);
    ASSERT_EQ(std::ssize(told.top), request.prompt_output.top_logprobs);
    if (told.top.empty()) continue;
    EXPECT_FLOAT_EQ(told.top[0].logprob,
                    static_cast<float>(logprob_by_definition(logits, told.top[0].token)));
    EXPECT_EQ(logits[static_cast<size_t>(told.top[0].token)], *std::ranges::max_element(logits));
  }
}

TEST(PromptOutput, logprobs_of_every_prompt_token_whatever_chunks_and_preemption) {
  int64_t n_preemptions = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed, "prompt output");
    Bench bench(schedule_of(24, 6, 18));
    std::vector<std::pair<GenerationRequest, std::shared_ptr<RecordingSink>>> all;
    for (int i = 0; i < 20; ++i) {
      GenerationRequest request = test::random_request(random, 90, 60);
      request.stop.clear();
      request.prompt_output.logprobs = random.below(3) != 0;
      if (request.prompt_output.logprobs) {
        request.prompt_output.top_logprobs = static_cast<int>(random.below(4));
        if (random.below(3) == 0) request.max_tokens = 0;
      }
      auto sink = bench.add(request);
      all.emplace_back(std::move(request), std::move(sink));
      for (uint64_t steps = random.below(4); steps > 0; --steps) bench.loop.step();
    }
    bench.run();
    n_preemptions += bench.loop.stats().preemptions_total;
    for (const auto& [request, sink] : all) {
      if (request.prompt_output.logprobs) {
        expect_prompt_scores(*sink, request);
        EXPECT_EQ(sink->completion.usage.cached_prompt_tokens, 0);
      } else {
        EXPECT_TRUE(sink->prompt.empty());
      }
      if (request.max_tokens == 0) {
        EXPECT_TRUE(sink->events.empty());
        EXPECT_EQ(sink->completion.reason, FinishReason::kLength);
      } else {
        EXPECT_EQ(sink->tokens(), test::answer({}, *bench.tokenizer, request).tokens);
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(n_preemptions, 10);
}

TEST(PromptOutput, pooled_states_are_the_mean_or_the_last_of_all_positions) {
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
    Random random(7, "pooling");
    Bench bench(schedule_of(20, 4, 40));
    for (int i = 0; i < 10; ++i) {
      GenerationRequest request;
      request.prompt = test::random_prompt(random, 120);
      request.max_tokens = 0;
      request.prompt_output.pooling = pooling;
      const auto sink = bench.add(request);
      bench.run();
      const auto n = request.prompt.size();
      std::vector<double> expected(4, 0.0);
      for (size_t p = pooling == Pooling::kMean ? 0 : n - 1; p < n; ++p)
        for (size_t part = 0; part < 4; ++part)
          expected[part] += static_cast<double>((hash_after(request.prompt, p + 1) >> (16 * part)) & 0xffff);
      ASSERT_EQ(sink->completion.pooled.size(), 4U);
      for (size_t part = 0; part < 4; ++part) {
        const double mean = expected[part] / (pooling == Pooling::kMean ? static_cast<double>(n) : 1);
        EXPECT_EQ(sink->completion.pooled[part], static_cast<float>(mean));
      }
    }
  }
}

TEST(PromptOutput, nan_in_the_middle_of_a_prompt_ends_that_request_alone) {
  Bench bench(schedule_of(16, 4, 40));
  GenerationRequest bad;
  bad.prompt.assign(40, 'x');
  bad.prompt[20] = test::kPoison;
  bad.max_tokens = 0;
  bad.prompt_output.logprobs = true;
  GenerationRequest good = bad;
  good.prompt[20] = 'y';
  const auto bad_sink = bench.add(bad);
  const auto good_sink = bench.add(good);
  bench.run();
  EXPECT_EQ(bad_sink->completion.reason, FinishReason::kError);
  ASSERT_TRUE(bad_sink->completion.error.has_value());
  EXPECT_EQ(bad_sink->completion.error->code, ErrorCode::kCorrupt);
  expect_prompt_scores(*good_sink, good);
}

TEST(CheckRequest, class_and_prompt_output_out_of_range_are_refused_by_name) {
  GenerationRequest request;
  request.prompt = {1};
  request.max_tokens = 0;
  const auto where = [&] {
    const auto checked = check_request(request, {test::kVocab, 256});
    return checked ? std::string("accepted") : checked.error().where;
  };
  EXPECT_EQ(where(), "max_tokens");
  request.prompt_output.pooling = Pooling::kMean;
  EXPECT_EQ(where(), "accepted");
  request.prompt_output.top_logprobs = 21;
  EXPECT_EQ(where(), "top_logprobs");
  request.prompt_output.top_logprobs = 20;
  for (const double weight : {0.0, -1.0, std::nan(""), 1e7}) {
    request.share.weight = weight;
    EXPECT_EQ(where(), "weight");
  }
  request.share.weight = 1;
  request.share.priority = 101;
  EXPECT_EQ(where(), "priority");
  request.share.priority = -100;
  request.share.ttft_bound_seconds = 0;
  EXPECT_EQ(where(), "ttft_bound");
}

}  // namespace
}  // namespace assay
