// Constraints on sequences: what they mask is never chosen, they hear of every token, and what runs beside
// them gives the answer that it gives alone.
#include "engine/token_constraint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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
using test::RecordingSink;

// Allows the letters a to e, of which each must differ from the one before; the end token once `n_least` are
// there; complete at `n_most`.
class LetterConstraint final : public TokenConstraint {
 public:
  LetterConstraint(size_t n_least, size_t n_most) : n_least_(n_least), n_most_(n_most) {}

  Result<void> mask(std::span<float> logits) override {
    if (fail_at == accepted.size()) return fail(ErrorCode::kInternal, "constraint", "no more");
    for (int32_t token = 0; token < static_cast<int32_t>(logits.size()); ++token) {
      const bool letter = token >= 'a' && token <= 'e' && (accepted.empty() || accepted.back() != token);
      const bool end = token == test::kEnd && accepted.size() >= n_least_;
      if (!letter && !end) logits[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
    }
    return {};
  }
  Result<void> accept(int32_t token) override {
    accepted.push_back(token);
    return {};
  }
  bool complete() override { return accepted.size() >= n_most_; }

  std::vector<int32_t> accepted;
  size_t fail_at = std::numeric_limits<size_t>::max();

 private:
  const size_t n_least_, n_most_;
};

struct Loop {
  explicit Loop(int64_t n_blocks = 64)
      : loop(model, *tokenizer, std::move(*KvPool::create(model.kv_layout(16), n_blocks)), SwapSpace(),
             {.schedule =
                  {.step_token_budget = 64, .max_running = 8, .page_tokens = 16, .total_blocks = n_blocks}},
             clock) {}

  std::shared_ptr<RecordingSink> add(GenerationRequest request) {
    const auto longest = check_request(request, {test::kVocab, 256});
    EXPECT_TRUE(longest.has_value());
    auto sink = std::make_shared<RecordingSink>();
    loop.add(std::make_unique<Sequence>(++last_id, std::move(request), sink, *tokenizer, loop.pool(),
                                        *longest, clock.now_seconds()));
    return sink;
  }
  void run() {
    for (int step = 0; step < 5000 && !loop.idle(); ++step) loop.step();
    EXPECT_TRUE(loop.idle());
  }

  std::shared_ptr<const Tokenizer> tokenizer = test::fake_tokenizer();
  VirtualClock clock;
  FakeModel model;
  StepLoop loop;
  RequestId last_id = 0;
};

GenerationRequest request_of(uint64_t seed, float temperature, std::shared_ptr<TokenConstraint> constraint) {
  Random random(seed, "constraint prompts");
  GenerationRequest request;
  for (uint64_t n = 1 + random.below(40); n > 0; --n)
    request.prompt.push_back(static_cast<int32_t>('a' + random.below(20)));
  request.max_tokens = 40;
  request.sampling.temperature = temperature;
  request.sampling.seed = seed;
  request.sampling.logprobs = true;
  request.sampling.top_logprobs = 3;
  request.constraint = std::move(constraint);
  return request;
}

TEST(TokenConstraint, masked_tokens_are_never_chosen_and_chosen_ones_reported) {
  for (const float temperature : {0.0F, 1.0F, 2.0F}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Loop loop;
      const auto constraint = std::make_shared<LetterConstraint>(5, 30);
      const auto sink = loop.add(request_of(seed, temperature, constraint));
      loop.run();
      EXPECT_EQ(sink->tokens(), constraint->accepted);
      ASSERT_GE(constraint->accepted.size(), 5U);
      ASSERT_LE(constraint->accepted.size(), 30U);
      for (size_t i = 0; i < constraint->accepted.size(); ++i) {
        EXPECT_TRUE(constraint->accepted[i] >= 'a' && constraint->accepted[i] <= 'e');
        EXPECT_TRUE(i == 0 || constraint->accepted[i] != constraint->accepted[i - 1]);
      }
      EXPECT_EQ(sink->completion.reason, FinishReason::kStop);
    }
  }
}

// Of the allowed tokens alone: their probabilities add up to one.
TEST(TokenConstraint, log_probabilities_are_of_the_masked_distribution) {
  Loop loop;
  const auto sink = loop.add(request_of(3, 0, std::make_shared<LetterConstraint>(100, 1)));
  loop.run();
  ASSERT_EQ(sink->events.size(), 1U);
  const TokenEvent& event = sink->events[0];
  EXPECT_FLOAT_EQ(*event.logprob, event.top.at(0).logprob);
  double known = 0;
  for (const TokenLogprob& top : event.top) known += std::exp(static_cast<double>(top.logprob));
  // Five letters, three of them listed: the other two are no likelier than the third.
  EXPECT_LE(known, 1 + 1e-6);
  EXPECT_GE(known + 2 * std::exp(static_cast<double>(event.top.at(2).logprob)), 1 - 1e-6);
}

TEST(TokenConstraint, sequences_beside_it_give_the_answers_that_they_give_alone) {
  for (uint64_t seed = 0; seed < 15; ++seed) {
    Random random(seed, "beside");
    Loop loop(24);  // few pages: some are preempted
    std::vector<std::pair<GenerationRequest, std::shared_ptr<RecordingSink>>> free;
    std::vector<std::shared_ptr<LetterConstraint>> constraints;
    std::vector<std::shared_ptr<RecordingSink>> constrained;
    for (int i = 0; i < 6; ++i) {
      GenerationRequest request = test::random_request(random, 60, 40);
      free.emplace_back(request, loop.add(request));
      constraints.push_back(std::make_shared<LetterConstraint>(5, 30));
      constrained.push_back(
          loop.add(request_of(seed * 10 + static_cast<uint64_t>(i), 1, constraints.back())));
    }
    loop.run();
    for (const auto& [request, sink] : free) {
      const auto expected = test::answer({}, *loop.tokenizer, request);
      EXPECT_EQ(sink->tokens(), expected.tokens);
    }
    for (size_t i = 0; i < constrained.size(); ++i) {
      Loop alone;
      const auto again = std::make_shared<LetterConstraint>(5, 30);
      const auto sink = alone.add(request_of(seed * 10 + i, 1, again));
      alone.run();
      EXPECT_EQ(constrained[i]->tokens(), sink->tokens());
      EXPECT_EQ(constraints[i]->accepted, again->accepted);
    }
  }
}

TEST(TokenConstraint, its_failure_ends_its_sequence_alone) {
  Loop loop;
  const auto constraint = std::make_shared<LetterConstraint>(20, 30);
  constraint->fail_at = 4;
  const auto failing = loop.add(request_of(1, 1, constraint));
  const auto other = loop.add(request_of(2, 1, std::make_shared<LetterConstraint>(3, 10)));
  loop.run();
  EXPECT_EQ(failing->completion.reason, FinishReason::kError);
  EXPECT_EQ(failing->completion.error->where, "constraint");
  EXPECT_EQ(failing->tokens().size(), 4U);
  EXPECT_EQ(other->completion.reason, FinishReason::kStop);
}

TEST(TokenConstraint, a_cut_is_reported_as_length) {
  Loop loop;
  GenerationRequest request = request_of(1, 1, std::make_shared<LetterConstraint>(100, 100));
  request.max_tokens = 7;
  const auto sink = loop.add(std::move(request));
  loop.run();
  EXPECT_EQ(sink->completion.reason, FinishReason::kLength);
  EXPECT_EQ(sink->tokens().size(), 7U);
}

}  // namespace
}  // namespace assay
