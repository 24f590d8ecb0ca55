// The engine with its thread: concurrent submitters, cancellation, draining, refusals.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "engine/fake_model.h"
#include "engine/kv_budget.h"
#include "engine/random_requests.h"
#include "engine/recording_sink.h"

namespace assay {
namespace {

using test::FakeModel;
using test::FakeOptions;
using test::RecordingSink;

// 16 tokens, keys and values, 2 values padded to 16 of 4 bytes.
constexpr uint64_t kBlockBytes = 16 * 2 * 16 * 4;

std::unique_ptr<Engine> make_engine(FakeOptions fake, EngineConfig config) {
  config.step_token_budget = fake.max_batch_tokens;
  auto engine = Engine::create(std::make_shared<FakeModel>(fake), test::fake_tokenizer(), config);
  EXPECT_TRUE(engine.has_value()) << engine.error().message();
  return std::move(*engine);
}

GenerationRequest simple_request(int n_prompt, int max_tokens) {
  GenerationRequest request;
  request.prompt.assign(static_cast<size_t>(n_prompt), 'a');
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.ignore_end_of_generation = true;
  return request;
}

TEST(Engine, concurrent_submitters_get_the_answers_they_get_alone) {
  const FakeOptions fake;
  const auto engine = make_engine(fake, {.kv_budget_bytes = 20 * kBlockBytes, .max_sequences = 8});
  EXPECT_EQ(engine->stats().kv_blocks_total, 20);
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      Random random(thread, "submitter");
      for (int i = 0; i < 12; ++i) {
        const GenerationRequest request = test::random_request(random, 90, 60);
        const auto text = generate(*engine, request);
        ASSERT_TRUE(text.has_value()) << text.error().message();
        const test::Answer answer = test::answer(fake, engine->tokenizer(), request);
        EXPECT_EQ(text->tokens, answer.tokens);
        EXPECT_EQ(text->text, answer.text);
        EXPECT_EQ(text->completion.reason, answer.reason);
        EXPECT_EQ(text->logprobs.size(), request.sampling.top_logprobs > 0 ? text->tokens.size() : 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  engine->drain(10);  // the last publish of statistics
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.running + stats.waiting + stats.kv_blocks_used, 0);
  EXPECT_GT(stats.steps_total, 0);
  EXPECT_GT(stats.prompt_tokens_total, 0);
}

TEST(Engine, cancel_from_the_sink_and_from_outside_ends_with_cancelled) {
  const auto engine = make_engine({.max_context = 4096, .end_bias = -50}, {.max_sequences = 4});
  auto sink = std::make_shared<RecordingSink>();
  std::atomic<RequestId> id = 0;
  sink->on_each_token = [&] { engine->cancel(id); };  // may be 0 the first time, then unknown and ignored
  id = *engine->submit(simple_request(10, -1), sink);
  sink->wait();
  EXPECT_EQ(sink->completion.reason, FinishReason::kCancelled);
  EXPECT_FALSE(sink->completion.error.has_value());

  auto outside = std::make_shared<RecordingSink>();
  const RequestId other = *engine->submit(simple_request(10, -1), outside);
  engine->cancel(other);
  engine->cancel(other);
  engine->cancel(999999);
  outside->wait();
  EXPECT_EQ(outside->completion.reason, FinishReason::kCancelled);
}

TEST(Engine, drain_refuses_new_requests_and_finishes_running_ones) {
  const auto engine = make_engine({}, {.max_sequences = 2});
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 6; ++i) {
    sinks.push_back(std::make_shared<RecordingSink>());
    ASSERT_TRUE(engine->submit(simple_request(20, 30), sinks.back()).has_value());
  }
  engine->drain(60);
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->finished());
    EXPECT_EQ(sink->completion.reason, FinishReason::kLength);
  }
  const auto refused = engine->submit(simple_request(1, 1), std::make_shared<RecordingSink>());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
}

TEST(Engine, drain_without_time_cancels_what_runs) {
  const auto engine = make_engine({.max_context = 4096, .end_bias = -50}, {.max_sequences = 1});
  auto running = std::make_shared<RecordingSink>(), waiting = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine->submit(simple_request(10, -1), running).has_value());
  ASSERT_TRUE(engine->submit(simple_request(10, -1), waiting).has_value());
  engine->drain(0);
  ASSERT_TRUE(running->finished() && waiting->finished());
  EXPECT_EQ(waiting->completion.reason, FinishReason::kCancelled);
}

TEST(Engine, destruction_ends_every_request_once) {
  auto engine = make_engine({.max_context = 4096, .end_bias = -50}, {.max_sequences = 2});
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 5; ++i) {
    sinks.push_back(std::make_shared<RecordingSink>());
    ASSERT_TRUE(engine->submit(simple_request(10, -1), sinks.back()).has_value());
  }
  engine.reset();
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->finished());
    EXPECT_EQ(sink->completion.reason, FinishReason::kCancelled);
    EXPECT_EQ(sink.use_count(), 1);  // the engine holds it no longer
  }
}

TEST(Engine, full_queue_is_refused_and_the_engine_goes_on) {
  const auto engine =
      make_engine({.max_context = 4096, .end_bias = -50}, {.max_sequences = 1, .max_queue = 2});
  std::vector<RequestId> ids;
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 3; ++i) {
    sinks.push_back(std::make_shared<RecordingSink>());
    ids.push_back(*engine->submit(simple_request(10, -1), sinks.back()));
  }
  const auto refused = engine->submit(simple_request(10, 1), std::make_shared<RecordingSink>());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  for (const RequestId id : ids) engine->cancel(id);
  for (const auto& sink : sinks) sink->wait();
  while (engine->stats().running + engine->stats().waiting > 0) std::this_thread::yield();
  EXPECT_TRUE(generate(*engine, simple_request(10, 1)).has_value());
}

TEST(Engine, requests_that_can_never_run_are_refused_by_field) {
  const auto engine = make_engine({.max_context = 64}, {});
  const auto expect_refused = [&](GenerationRequest request, const std::string& field) {
    const auto result = engine->submit(std::move(request), std::make_shared<RecordingSink>());
    ASSERT_FALSE(result.has_value()) << field;
    EXPECT_EQ(result.error().where, field) << result.error().message();
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  };
  expect_refused(simple_request(0, 1), "prompt");
  expect_refused(simple_request(64, 1), "prompt");
  expect_refused(simple_request(1, 0), "max_tokens");
  expect_refused(simple_request(1, -2), "max_tokens");
  GenerationRequest request = simple_request(3, 1);
  request.prompt[1] = test::kVocab;
  expect_refused(request, "prompt");
  request.prompt[1] = -1;
  expect_refused(request, "prompt");
  request = simple_request(3, 1);
  request.stop.assign(17, "x");
  expect_refused(request, "stop");
  request.stop = {"ok", ""};
  expect_refused(request, "stop");
  request.stop = {"\xA9"};
  expect_refused(request, "stop");
  request.stop = {std::string(5000, 'x')};
  expect_refused(request, "stop");
  request = simple_request(3, 1);
  request.sampling.top_p = 0;
  expect_refused(request, "top_p");
  EXPECT_TRUE(generate(*engine, simple_request(63, 1000000)).has_value());  // cut to the context
}

TEST(Engine, impossible_configurations_are_refused) {
  const auto expect_refused = [](EngineConfig config, ErrorCode code, const std::string& field) {
    const auto engine = Engine::create(std::make_shared<FakeModel>(), test::fake_tokenizer(), config);
    ASSERT_FALSE(engine.has_value()) << field;
    EXPECT_EQ(engine.error().code, code);
    EXPECT_EQ(engine.error().where, field) << engine.error().message();
  };
  expect_refused({.page_tokens = 8, .step_token_budget = 64}, ErrorCode::kInvalidArgument, "page_tokens");
  expect_refused({.step_token_budget = 65}, ErrorCode::kInvalidArgument, "step_token_budget");
  expect_refused({.max_sequences = 65, .step_token_budget = 64}, ErrorCode::kInvalidArgument,
                 "step_token_budget");
  expect_refused({.max_sequences = 0, .step_token_budget = 64}, ErrorCode::kInvalidArgument, "max_running");
  expect_refused({.max_queue = 0, .step_token_budget = 64}, ErrorCode::kInvalidArgument, "max_queue");
  expect_refused({.kv_budget_bytes = 15 * kBlockBytes, .step_token_budget = 64},
                 ErrorCode::kResourceExhausted, "KV budget");
}

TEST(Generate, failing_request_is_an_error) {
  const auto engine = make_engine({}, {});
  GenerationRequest request = simple_request(3, 5);
  request.prompt[1] = test::kPoison;
  const auto text = generate(*engine, request);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(generate(*engine, simple_request(3, 5)).has_value());
}

TEST(KvBudget, pages_follow_from_the_memory) {
  KvDemand demand{.layout = {.n_layers = 1, .n_kv_heads = 1, .head_dim = 2},
                  .max_sequences = 3,
                  .context_tokens = 40,
                  .available_bytes = 1000 * kBlockBytes};
  ASSERT_EQ(demand.layout.block_bytes(), kBlockBytes);
  EXPECT_EQ(*kv_blocks_for(demand), 9);  // three pages for each of three
  demand.available_bytes = 14 * kBlockBytes;
  EXPECT_EQ(*kv_blocks_for(demand), 7);
  demand.available_bytes = 5 * kBlockBytes;
  EXPECT_EQ(kv_blocks_for(demand).error().code, ErrorCode::kResourceExhausted);
  demand.budget_bytes = 4 * kBlockBytes + 1;
  EXPECT_EQ(*kv_blocks_for(demand), 4);
  demand.budget_bytes = 3 * kBlockBytes - 1;
  const auto refused = kv_blocks_for(demand);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().what.find("needs 3 pages of 16 tokens at 2.00 KiB each, 6.00 KiB in all"),
            std::string::npos)
      << refused.error().what;
  EXPECT_NE(refused.error().what.find("holds 2"), std::string::npos) << refused.error().what;
}

}  // namespace
}  // namespace assay
