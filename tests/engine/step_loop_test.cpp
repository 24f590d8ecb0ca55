// Random loads on the step loop: every request must get exactly the answer that it gets alone, computed
// without pages or batches (fake_model.h), whatever runs beside it, however little memory there is.
#include "engine/step_loop.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "base/clock.h"
#include "base/random.h"
#include "engine/fake_model.h"
#include "engine/random_requests.h"
#include "engine/recording_sink.h"
#include "engine/request_check.h"

namespace assay {
namespace {

using test::FakeModel;
using test::FakeOptions;
using test::RecordingSink;

SwapSpace swap_of(const KvLayout& layout, int64_t n_slots) {
  auto swap = SwapSpace::create(layout, static_cast<uint64_t>(n_slots) * layout.block_bytes());
  EXPECT_TRUE(swap.has_value());
  return std::move(*swap);
}

struct Bench {
  Bench(FakeOptions fake, ScheduleConfig schedule, bool prefix_cache, int64_t swap_slots = 0)
      : options(fake),
        model(fake),
        loop(model, *tokenizer, std::move(*KvPool::create(model.kv_layout(16), schedule.total_blocks)),
             swap_of(model.kv_layout(16), swap_slots),
             {.schedule = schedule, .prefix_cache = prefix_cache, .patience_seconds = 0.5}, clock) {
    // A machine that takes a millisecond a step and a tenth for each token.
    model.on_forward = [this](int64_t n_tokens) {
      clock.advance(0.001 + 0.0001 * static_cast<double>(n_tokens));
    };
  }

  std::shared_ptr<RecordingSink> add(RequestId id, GenerationRequest request) {
    const auto longest = check_request(request, {test::kVocab, options.max_context});
    EXPECT_TRUE(longest.has_value());
    auto sink = std::make_shared<RecordingSink>();
    loop.add(std::make_unique<Sequence>(id, std::move(request), sink, *tokenizer, loop.pool(), *longest,
                                        clock.now_seconds()));
    return sink;
  }

  FakeOptions options;
  std::shared_ptr<const Tokenizer> tokenizer = test::fake_tokenizer();
  VirtualClock clock;
  FakeModel model;
  StepLoop loop;
};

ScheduleConfig schedule_of(int64_t budget, int64_t max_running, int64_t blocks, int64_t watermark = 0) {
  return {.step_token_budget = budget,
          .max_running = max_running,
          .page_tokens = 16,
          .total_blocks = blocks,
          .watermark_blocks = watermark};
}

struct Load {
  FakeOptions fake;
  ScheduleConfig schedule;
  bool prefix_cache = true;
  int n_requests = 30;
  double cancel_share = 0;
  int n_tenants = 1;
  int n_priorities = 1;
  int64_t swap_slots = 0;
};

EngineStats run_random_load(uint64_t seed, const Load& load) {
  Random random(seed, "step loop");
  Bench bench(load.fake, load.schedule, load.prefix_cache, load.swap_slots);
  struct Expected {
    GenerationRequest request;
    std::shared_ptr<RecordingSink> sink;
    int64_t cancel_after = -1;
  };
  std::map<RequestId, Expected> all;
  int64_t guard = 0;
  while (std::ssize(all) < load.n_requests || !bench.loop.idle()) {
    while (std::ssize(all) < load.n_requests && random.below(3) == 0) {
      const RequestId id = all.size() + 1;
      GenerationRequest request = test::random_request(random, 90, 60);
      // Follow-up turns: the prompt is an earlier prompt and its answer.
      if (!all.empty() && random.below(4) == 0) {
        const Expected& earlier = all.at(1 + random.below(all.size()));
        const auto answer = test::answer(load.fake, *bench.tokenizer, earlier.request);
        request.prompt = earlier.request.prompt;
        request.prompt.insert(request.prompt.end(), answer.tokens.begin(), answer.tokens.end());
        request.prompt.push_back('\n');
      }
      request.share.tenant = std::to_string(random.below(static_cast<uint64_t>(load.n_tenants)));
      request.share.weight = request.share.tenant == "0" ? 3 : 1;
      request.share.priority = static_cast<int>(random.below(static_cast<uint64_t>(load.n_priorities)));
      auto sink = bench.add(id, request);
      all[id] = {std::move(request), sink, random.uniform() < load.cancel_share ? random.between(0, 30) : -1};
    }
    for (auto& [id, expected] : all)
      if (expected.cancel_after >= 0 && expected.cancel_after-- == 0) bench.loop.cancel(id);
    bench.loop.step();
    EXPECT_LE(bench.loop.stats().kv_blocks_used, load.schedule.total_blocks);
    if (++guard > 100000) {
      ADD_FAILURE() << "does not come to an end";
      break;
    }
  }
  for (const auto& [id, expected] : all) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " request " << id);
    const test::Answer answer = test::answer(load.fake, *bench.tokenizer, expected.request);
    const RecordingSink& sink = *expected.sink;
    EXPECT_TRUE(sink.finished());
    std::vector<int32_t> tokens = sink.tokens();
    if (sink.completion.reason == FinishReason::kCancelled) {
      EXPECT_GT(load.cancel_share, 0);
      EXPECT_TRUE(std::ranges::equal(tokens, std::span(answer.tokens).first(tokens.size())));
      continue;
    }
    EXPECT_EQ(tokens, answer.tokens);
    EXPECT_EQ(sink.text, answer.text);
    EXPECT_EQ(sink.completion.stop_text, answer.stop_text);
    EXPECT_EQ(sink.completion.reason, answer.reason);
    EXPECT_EQ(sink.completion.usage.prompt_tokens, std::ssize(expected.request.prompt));
    if (testing::Test::HasFailure()) break;
  }
  const EngineStats stats = bench.loop.stats();
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_EQ(bench.loop.pool().n_free() + bench.loop.pool().n_idle(), load.schedule.total_blocks);
  return stats;
}

TEST(StepLoop, batched_requests_get_the_answers_they_get_alone) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const EngineStats stats = run_random_load(seed, {.schedule = schedule_of(64, 8, 400)});
    EXPECT_EQ(stats.preemptions_total, 0);
    EXPECT_GT(stats.prompt_tokens_cached_total, 0);
    if (HasFailure()) return;
  }
}

TEST(StepLoop, scarce_pages_force_preemption_and_change_no_answer) {
  int64_t n_preemptions = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const bool prefix_cache = seed % 2 == 0;
    const EngineStats stats = run_random_load(
        seed, {.schedule = schedule_of(48, 8, 18, seed % 3 == 0 ? 1 : 0), .prefix_cache = prefix_cache});
    n_preemptions += stats.preemptions_total;
    if (!prefix_cache) {
      EXPECT_EQ(stats.prompt_tokens_cached_total, 0);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(n_preemptions, 20);
}

TEST(StepLoop, tenants_priorities_and_swapping_change_no_answer) {
  int64_t n_preemptions = 0, n_pauses = 0, n_swapped = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Load load{.schedule = schedule_of(48, 4, 18), .n_requests = 40, .n_tenants = 3, .n_priorities = 3};
    load.fake.phases_differ = seed % 2 == 0;
    load.prefix_cache = seed % 3 != 0;
    load.cancel_share = seed % 4 == 0 ? 0.2 : 0;
    load.swap_slots = seed % 5 == 0 ? 0 : 10;
    const EngineStats stats = run_random_load(seed, load);
    n_preemptions += stats.preemptions_total;
    n_pauses += stats.pauses_total;
    n_swapped += stats.swapped_out_blocks_total;
    if (HasFailure()) return;
  }
  EXPECT_GT(n_preemptions, 50);
  EXPECT_GT(n_pauses, 8);
  EXPECT_GT(n_swapped, 20);
}

TEST(StepLoop, shared_prefix_is_computed_once_by_those_that_arrive_together) {
  Bench bench({.max_context = 1200, .max_batch_tokens = 128}, schedule_of(128, 16, 1200), true);
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  std::vector<GenerationRequest> requests;
  for (RequestId id = 1; id <= 16; ++id) {
    GenerationRequest request;
    for (int i = 0; i < 1024; ++i)
      request.prompt.push_back(static_cast<int32_t>(test::mix(static_cast<uint64_t>(i)) % 128));
    request.prompt.push_back(static_cast<int32_t>('a' + id));
    request.max_tokens = 1;
    request.sampling.temperature = 0;
    sinks.push_back(bench.add(id, request));
    requests.push_back(std::move(request));
  }
  while (!bench.loop.idle()) bench.loop.step();
  for (size_t i = 0; i < sinks.size(); ++i)
    EXPECT_EQ(sinks[i]->tokens(), test::answer(bench.options, *bench.tokenizer, requests[i]).tokens);
  EXPECT_LE(bench.model.n_computed_tokens, 1025 * 11 / 10);
}

TEST(StepLoop, prompts_are_cut_so_that_streams_keep_their_pace) {
  Bench bench({.max_context = 1200, .max_batch_tokens = 512}, schedule_of(512, 4, 1200), true);
  GenerationRequest stream;
  stream.prompt = {'a', 'b'};
  stream.max_tokens = 400;
  stream.ignore_end_of_generation = true;
  bench.add(1, stream);
  for (int i = 0; i < 20; ++i) bench.loop.step();  // 1.1 ms a decode
  GenerationRequest prompt;
  prompt.prompt.assign(1000, 'p');
  prompt.max_tokens = 1;
  bench.add(2, prompt);
  bench.loop.step();  // nothing is known of prompts yet
  double longest = 0;
  for (int i = 0; i < 10; ++i) {
    const double before = bench.clock.now_seconds();
    bench.loop.step();
    longest = std::max(longest, bench.clock.now_seconds() - before);
  }
  EXPECT_LE(longest, 0.050);
  EXPECT_GE(longest, 0.040);  // and the room is used
}

TEST(StepLoop, phases_with_different_formats_share_only_prompt_pages) {
  int64_t n_preemptions = 0, n_cached = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const EngineStats stats =
        run_random_load(seed, {.fake = {.phases_differ = true}, .schedule = schedule_of(40, 6, 18)});
    n_preemptions += stats.preemptions_total;
    n_cached += stats.prompt_tokens_cached_total;
    if (HasFailure()) return;
  }
  EXPECT_GT(n_preemptions, 20);
  EXPECT_GT(n_cached, 0);
}

TEST(StepLoop, cancelled_requests_leave_the_others_alone) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    run_random_load(
        seed,
        {.fake = {.phases_differ = seed % 2 == 0}, .schedule = schedule_of(64, 8, 20), .cancel_share = 0.4});
    if (HasFailure()) return;
  }
}

TEST(StepLoop, chunks_of_one_token_give_the_same_answers) {
  run_random_load(3, {.schedule = schedule_of(2, 2, 60), .n_requests = 8});
  run_random_load(4, {.schedule = schedule_of(1, 1, 16), .n_requests = 8});
}

TEST(StepLoop, poisoned_request_fails_and_the_others_go_on) {
  for (const int32_t bad : {test::kPoison, test::kBadLogits}) {
    Bench bench({}, schedule_of(16, 4, 60), true);
    GenerationRequest good;
    good.prompt = {'a', 'b', 'c'};
    good.max_tokens = 40;
    good.sampling.temperature = 0;
    GenerationRequest poisoned = good;
    poisoned.prompt.assign(40, 'x');
    poisoned.prompt[bad == test::kPoison ? 20 : 39] = bad;
    const auto first = bench.add(1, good);
    const auto failing = bench.add(2, poisoned);
    const auto last = bench.add(3, good);
    for (int i = 0; i < 200 && !bench.loop.idle(); ++i) bench.loop.step();
    const test::Answer answer = test::answer({}, *bench.tokenizer, good);
    EXPECT_EQ(first->tokens(), answer.tokens);
    EXPECT_EQ(last->tokens(), answer.tokens);
    ASSERT_EQ(failing->completion.reason, FinishReason::kError);
    ASSERT_TRUE(failing->completion.error.has_value());
    EXPECT_EQ(failing->completion.error->code, ErrorCode::kCorrupt);
    EXPECT_TRUE(failing->tokens().empty());
    // The damaged pages are not found again.
    const auto again = bench.add(4, poisoned);
    for (int i = 0; i < 200 && !bench.loop.idle(); ++i) bench.loop.step();
    if (bad == test::kPoison) {
      EXPECT_LE(again->completion.usage.cached_prompt_tokens, 16);
    }
    EXPECT_EQ(again->completion.reason, FinishReason::kError);
  }
}

TEST(StepLoop, end_of_generation_stops_unless_ignored) {
  const FakeOptions fake{.end_bias = 20};  // the end is the likeliest token at once
  Bench bench(fake, schedule_of(16, 4, 60), true);
  GenerationRequest request;
  request.prompt = {'a'};
  request.max_tokens = 5;
  request.sampling.temperature = 0;
  const auto stopped = bench.add(1, request);
  request.ignore_end_of_generation = true;
  const auto ignored = bench.add(2, request);
  request.keep_special = true;
  const auto kept = bench.add(3, request);
  while (!bench.loop.idle()) bench.loop.step();
  EXPECT_EQ(stopped->completion.reason, FinishReason::kStop);
  EXPECT_TRUE(stopped->events.empty());
  EXPECT_EQ(stopped->completion.usage.completion_tokens, 1);  // sampled, not delivered
  EXPECT_EQ(ignored->completion.reason, FinishReason::kLength);
  EXPECT_EQ(ignored->tokens(), std::vector<int32_t>(5, test::kEnd));
  EXPECT_EQ(ignored->text, "");
  EXPECT_EQ(kept->text, "<|end|><|end|><|end|><|end|><|end|>");
}

TEST(StepLoop, context_length_ends_the_answer) {
  Bench bench({.max_context = 40, .end_bias = -50}, schedule_of(16, 4, 60), true);
  GenerationRequest request;
  request.prompt.assign(39, 'a');
  const auto one = bench.add(1, request);
  request.prompt.resize(30);
  const auto ten = bench.add(2, request);
  while (!bench.loop.idle()) bench.loop.step();
  EXPECT_EQ(one->events.size(), 1U);
  EXPECT_EQ(ten->events.size(), 10U);
  EXPECT_EQ(ten->completion.reason, FinishReason::kLength);
}

TEST(StepLoop, second_turn_reuses_the_pages_of_the_first) {
  Bench bench({.end_bias = -50}, schedule_of(64, 4, 60), true);
  GenerationRequest request;
  request.prompt.assign(50, 'q');
  request.max_tokens = 20;
  request.sampling.temperature = 0;
  const auto first = bench.add(1, request);
  while (!bench.loop.idle()) bench.loop.step();
  EXPECT_EQ(first->completion.usage.cached_prompt_tokens, 0);
  for (const int32_t token : first->tokens()) request.prompt.push_back(token);
  request.prompt.push_back('\n');
  const auto second = bench.add(2, request);
  while (!bench.loop.idle()) bench.loop.step();
  // 69 tokens were computed (the last one was only delivered): four whole pages of 16.
  EXPECT_EQ(second->completion.usage.cached_prompt_tokens, 64);
  EXPECT_EQ(second->tokens(), test::answer(bench.options, *bench.tokenizer, request).tokens);
}

TEST(StepLoop, prefix_pages_are_shared_within_a_tenant_only) {
  Bench bench({}, schedule_of(64, 4, 100), true);
  const auto run = [&](RequestId id, const std::string& tenant) {
    GenerationRequest request;
    request.prompt.assign(64, 'p');
    request.max_tokens = 1;
    request.share.tenant = tenant;
    const auto sink = bench.add(id, request);
    while (!bench.loop.idle()) bench.loop.step();
    return sink->completion.usage.cached_prompt_tokens;
  };
  EXPECT_EQ(run(1, "a"), 0);
  EXPECT_EQ(run(2, "b"), 0);
  EXPECT_EQ(run(3, ""), 0);
  EXPECT_EQ(run(4, "a"), 48);
  EXPECT_EQ(run(5, "b"), 48);
}

TEST(StepLoop, timings_are_those_of_the_clock) {
  Bench bench({.end_bias = -50}, schedule_of(16, 1, 60), true);
  bench.model.on_forward = nullptr;
  GenerationRequest request;
  request.prompt.assign(40, 'q');
  request.max_tokens = 4;
  const auto first = bench.add(1, request);
  const auto second = bench.add(2, request);
  while (!bench.loop.idle()) {
    bench.loop.step();
    bench.clock.advance(1);
  }
  // Three chunks of the prompt at 0, 1, 2 s; the last gives the first token, three more follow.
  EXPECT_EQ(first->completion.usage.queue_seconds, 0);
  EXPECT_EQ(first->completion.usage.prefill_seconds, 2);
  EXPECT_EQ(first->completion.usage.decode_seconds, 3);
  EXPECT_EQ(second->completion.usage.queue_seconds, 6);
}

}  // namespace
}  // namespace assay
