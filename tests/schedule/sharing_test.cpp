// Classes, tenants and pauses against the independent account of pages (paged_world.h), and the policy's
// promises to tenants in simulation.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "schedule/paged_world.h"

namespace assay {
namespace {

using test::Job;
using test::PagedWorld;

struct Workload {
  ScheduleConfig config;
  std::vector<double> weights;
  std::vector<Job> jobs;  // by arrival
};

Workload random_workload() {
  Workload workload;
  ScheduleConfig& config = workload.config;
  config.max_running = *rc::gen::inRange<int64_t>(1, 7);
  config.step_token_budget = config.max_running + *rc::gen::inRange<int64_t>(0, 40);
  config.page_tokens = *rc::gen::element<int64_t>(1, 4, 16);
  config.total_blocks = *rc::gen::inRange<int64_t>(4, 50);
  config.watermark_blocks = *rc::gen::inRange<int64_t>(0, 4);
  config.fairness_tokens = *rc::gen::inRange<int64_t>(0, 100);
  workload.weights = *rc::gen::container<std::vector<double>>(*rc::gen::inRange<size_t>(1, 4),
                                                              rc::gen::element(1.0, 2.0, 3.0, 0.5));
  const int64_t n_jobs = *rc::gen::inRange<int64_t>(1, 25);
  int64_t step = 0;
  for (int64_t i = 0; i < n_jobs; ++i) {
    Job job;
    job.arrival_step = step += *rc::gen::inRange<int64_t>(0, 4);
    const int64_t longest = config.total_blocks * config.page_tokens + 1;
    const int64_t total = *rc::gen::inRange<int64_t>(2, std::min<int64_t>(longest, 120) + 1);
    job.n_prompt = *rc::gen::inRange<int64_t>(1, total);
    job.n_output = total - job.n_prompt;
    job.prefix_group = *rc::gen::inRange<int64_t>(-1, 2);
    job.service_class = *rc::gen::inRange(0, 3);
    job.tenant = *rc::gen::inRange<int32_t>(0, static_cast<int32_t>(workload.weights.size()));
    job.return_cost = *rc::gen::element(0.0, 1.0, 2.0);
    workload.jobs.push_back(job);
  }
  return workload;
}

// A decode that gets nothing was paused or lost its pages; who was paused made room for somebody.
void check_plan(const PagedWorld& world, const StepPlan& plan, const ScheduleConfig& config) {
  std::set<uint64_t> sliced;
  int64_t n_tokens = 0, n_admitted = 0;
  for (const PlannedSlice& slice : plan.slices) {
    RC_ASSERT(sliced.insert(slice.id).second);
    n_tokens += slice.n_tokens;
    n_admitted += slice.admitted ? 1 : 0;
  }
  RC_ASSERT(n_tokens == plan.n_tokens);
  RC_ASSERT(n_tokens <= config.step_token_budget);
  const std::set<uint64_t> preempted(plan.preempted.begin(), plan.preempted.end());
  const std::set<uint64_t> paused(plan.paused.begin(), plan.paused.end());
  RC_ASSERT(preempted.size() == plan.preempted.size());
  RC_ASSERT(paused.size() == plan.paused.size());
  const auto comes_before = [&](uint64_t prompt, uint64_t stream) {
    const Job &a = world.job(prompt), &b = world.job(stream);
    return a.service_class < b.service_class || (a.service_class == b.service_class && a.tenant != b.tenant);
  };
  for (const uint64_t id : world.running()) {
    if (!world.decodes(id)) continue;
    const bool gone = preempted.contains(id) || paused.contains(id);
    RC_ASSERT(!(sliced.contains(id) && gone));
    if (sliced.contains(id) || gone) continue;
    // It stepped aside, for a prompt that it would have cut.
    RC_ASSERT(std::ranges::any_of(plan.slices, [&](const PlannedSlice& slice) {
      return !world.decodes(slice.id) && comes_before(slice.id, id);
    }));
  }
  for (const uint64_t id : paused) RC_ASSERT(!preempted.contains(id));
  RC_ASSERT(std::ssize(paused) <= n_admitted);
  for (const uint64_t id : paused) {
    const bool for_somebody = std::ranges::any_of(
        plan.slices, [&](const PlannedSlice& slice) { return slice.admitted && comes_before(slice.id, id); });
    RC_ASSERT(for_somebody);
  }
}

RC_GTEST_PROP(Sharing, random_classes_and_tenants_finish_within_budgets, ()) {
  const Workload workload = random_workload();
  PagedWorld world(workload.config, workload.weights);
  size_t next = 0;
  int64_t idle_steps = 0;
  for (int64_t step = 0; world.finished().size() < workload.jobs.size(); ++step) {
    while (next < workload.jobs.size() && workload.jobs[next].arrival_step <= step) {
      world.arrive(next, workload.jobs[next]);
      ++next;
    }
    world.prompt_token_budget = step % 3 == 0 ? -1 : 1 + step % 5;
    const StepPlan plan = world.plan();
    check_plan(world, plan, workload.config);
    const bool somebody = !world.running().empty() || !world.waiting().empty();
    idle_steps = somebody && plan.slices.empty() ? idle_steps + 1 : 0;
    RC_ASSERT(idle_steps < 2 + static_cast<int64_t>(workload.jobs.size()));
    const std::string wrong = world.apply(plan);
    if (!wrong.empty()) RC_FAIL(wrong);
    RC_ASSERT(std::ssize(world.running()) <= workload.config.max_running);
    RC_ASSERT(step < 100000);
  }
  RC_ASSERT(world.free_blocks() == workload.config.total_blocks);
  RC_TAG(world.n_pauses > 0 ? "pausing" : "without pause");
}

// Each tenant always has `depth` requests; returns tokens computed by tenant over the last steps.
std::vector<int64_t> saturate(PagedWorld& world, size_t n_tenants,
                              const std::vector<std::pair<int64_t, int64_t>>& lengths, int64_t depth,
                              int64_t n_steps, uint64_t seed) {
  Random random(seed, "saturation");
  std::vector<int64_t> live(n_tenants), settled;
  uint64_t id = 0;
  std::map<uint64_t, size_t> owner;
  size_t reported = 0;
  for (int64_t step = 0; step < n_steps; ++step) {
    for (size_t tenant = 0; tenant < n_tenants; ++tenant)
      for (; live[tenant] < depth; ++live[tenant]) {
        Job job{.n_prompt = random.between(1, lengths[tenant].first),
                .n_output = random.between(1, lengths[tenant].second)};
        job.tenant = static_cast<int32_t>(tenant);
        owner[id] = tenant;
        world.arrive(id++, job);
      }
    EXPECT_EQ(world.apply(world.plan()), "");
    for (; reported < world.finished().size(); ++reported) --live[owner.at(world.finished()[reported])];
    if (step == n_steps / 10) settled = world.served_tokens;
  }
  std::vector<int64_t> tokens;
  for (size_t i = 0; i < n_tenants; ++i) tokens.push_back(world.served_tokens[i] - settled[i]);
  return tokens;
}

TEST(Sharing, saturating_tenants_get_tokens_by_weight_whatever_their_lengths) {
  const ScheduleConfig config{
      .step_token_budget = 128, .max_running = 16, .page_tokens = 16, .total_blocks = 800};
  for (const auto& lengths : std::vector<std::vector<std::pair<int64_t, int64_t>>>{
           {{128, 128}, {128, 128}}, {{400, 20}, {20, 200}}, {{20, 200}, {400, 20}}}) {
    PagedWorld world(config, {3, 1});
    const std::vector<int64_t> tokens = saturate(world, 2, lengths, 24, 6000, 11);
    EXPECT_NEAR(static_cast<double>(tokens[0]) / static_cast<double>(tokens[1]), 3.0, 0.15);
  }
}

TEST(Sharing, saturating_tenants_get_tokens_by_weight_when_pages_are_scarce) {
  const ScheduleConfig config{
      .step_token_budget = 96, .max_running = 16, .page_tokens = 16, .total_blocks = 60};
  PagedWorld world(config, {3, 1});
  const std::vector<int64_t> tokens = saturate(world, 2, {{150, 100}, {150, 100}}, 20, 8000, 12);
  EXPECT_NEAR(static_cast<double>(tokens[0]) / static_cast<double>(tokens[1]), 3.0, 0.15);
  EXPECT_GT(world.n_preemptions, 0);
}

TEST(Sharing, quiet_tenant_is_admitted_at_once_beside_a_flood) {
  const ScheduleConfig config{
      .step_token_budget = 64, .max_running = 8, .page_tokens = 16, .total_blocks = 400};
  PagedWorld world(config, {1, 1});
  uint64_t id = 0;
  for (; id < 100; ++id) world.arrive(id, {.n_prompt = 30, .n_output = 200});
  for (int step = 0; step < 50; ++step) ASSERT_EQ(world.apply(world.plan()), "");
  for (int round = 0; round < 10; ++round) {
    Job quiet{.n_prompt = 40, .n_output = 5};
    quiet.tenant = 1;
    world.arrive(id, quiet);
    const StepPlan plan = world.plan();
    EXPECT_EQ(plan.paused.size(), 1U);
    ASSERT_EQ(world.apply(plan), "");
    EXPECT_EQ(world.n_computed(id), 40);  // its whole prompt, in the first step
    for (int step = 0; step < 20; ++step) ASSERT_EQ(world.apply(world.plan()), "");
    ++id;
  }
  EXPECT_EQ(world.n_preemptions, 0);  // nobody's work was lost
}

TEST(Sharing, urgent_request_takes_the_slot_of_a_less_urgent_one) {
  const ScheduleConfig config{
      .step_token_budget = 64, .max_running = 2, .page_tokens = 16, .total_blocks = 100};
  PagedWorld world(config);
  world.arrive(0, {.n_prompt = 10, .n_output = 50, .service_class = 1});
  world.arrive(1, {.n_prompt = 10, .n_output = 50, .service_class = 2});
  ASSERT_EQ(world.apply(world.plan()), "");
  world.arrive(2, {.n_prompt = 10, .n_output = 5, .service_class = 0});
  const StepPlan plan = world.plan();
  EXPECT_EQ(plan.paused, std::vector<uint64_t>{1});
  ASSERT_EQ(world.apply(plan), "");
  EXPECT_TRUE(world.paused(1));
  while (world.finished().size() < 3) ASSERT_EQ(world.apply(world.plan()), "");
  EXPECT_EQ(world.finished(), (std::vector<uint64_t>{2, 0, 1}));
}

TEST(Sharing, urgent_stream_does_not_keep_an_overdue_request_waiting) {
  const ScheduleConfig config{
      .step_token_budget = 64, .max_running = 2, .page_tokens = 16, .total_blocks = 100};
  PagedWorld world(config);
  world.arrive(0, {.n_prompt = 10, .n_output = 20, .service_class = 5});
  uint64_t id = 1;
  const auto finished = [&] { return std::ranges::find(world.finished(), 0U) != world.finished().end(); };
  const auto run = [&](int n_steps) {
    for (int step = 0; step < n_steps && !finished(); ++step) {
      while (world.waiting().size() < 4) world.arrive(id++, {.n_prompt = 5, .n_output = 7});
      ASSERT_EQ(world.apply(world.plan()), "");
    }
  };
  run(500);
  EXPECT_FALSE(finished());
  world.set_overdue(0);
  run(25);
  EXPECT_TRUE(finished());
}

TEST(PlanStep, the_cheapest_return_per_block_loses_its_pages) {
  const ScheduleSequence running[] = {
      {.id = 1,
       .rank = 1,
       .n_tokens = 33,
       .n_computed = 32,
       .n_blocks = 2,
       .n_sole_blocks = 2,
       .return_seconds = 1},
      {.id = 2,
       .rank = 2,
       .n_tokens = 64,
       .n_computed = 63,
       .n_blocks = 4,
       .n_sole_blocks = 4,
       .return_seconds = 1},
      {.id = 3,
       .rank = 3,
       .n_tokens = 32,
       .n_computed = 31,
       .n_blocks = 2,
       .n_sole_blocks = 2,
       .return_seconds = 1},
  };
  const ScheduleConfig config{
      .step_token_budget = 64, .max_running = 4, .page_tokens = 16, .total_blocks = 8};
  EXPECT_EQ(plan_step({running, {}, 0}, config).preempted, std::vector<uint64_t>{2});
  auto spared = std::to_array(running);
  spared[1].is_protected = true;
  EXPECT_EQ(plan_step({spared, {}, 0}, config).preempted, std::vector<uint64_t>{3});
  spared[1] = running[1];
  spared[2].service_class = 1;
  EXPECT_EQ(plan_step({spared, {}, 0}, config).preempted, std::vector<uint64_t>{3});
}

TEST(PlanStep, prompts_beside_decodes_keep_to_their_budget) {
  const ScheduleSequence running[] = {
      {.id = 1, .rank = 1, .n_tokens = 20, .n_computed = 19, .n_blocks = 2, .n_sole_blocks = 2},
      {.id = 2, .rank = 2, .n_tokens = 200, .n_computed = 0, .n_blocks = 13, .n_sole_blocks = 13},
  };
  const ScheduleSequence waiting[] = {{.id = 3, .rank = 3, .n_tokens = 40}};
  const ScheduleConfig config{
      .step_token_budget = 512, .max_running = 4, .page_tokens = 16, .total_blocks = 100};
  ScheduleState state{running, waiting, 50};
  state.prompt_token_budget = 30;
  StepPlan plan = plan_step(state, config);
  ASSERT_EQ(plan.slices.size(), 2U);
  EXPECT_EQ(plan.slices[1].n_tokens, 30);
  state.running = std::span(running).last(1);  // nobody's stream suffers
  plan = plan_step(state, config);
  ASSERT_EQ(plan.slices.size(), 2U);
  EXPECT_EQ(plan.slices[0].n_tokens, 200);
  EXPECT_EQ(plan.slices[1].n_tokens, 40);
}

TEST(PlanStep, streams_above_their_share_step_aside_for_a_prompt_that_their_pace_would_cut) {
  const std::vector<ShareTenant> tenants = {{.weight = 1, .service = 900, .n_live = 4},
                                            {.weight = 1, .service = 100, .n_live = 1}};
  std::vector<ScheduleSequence> running;
  for (uint64_t id = 1; id <= 3; ++id)
    running.push_back(
        {.id = id, .rank = id + 1, .n_tokens = 20, .n_computed = 19, .n_blocks = 2, .n_sole_blocks = 2});
  running.push_back({.id = 4, .rank = 1, .n_tokens = 200, .n_blocks = 13, .n_sole_blocks = 13, .tenant = 1});
  const ScheduleConfig config{
      .step_token_budget = 512, .max_running = 4, .page_tokens = 16, .total_blocks = 100};
  ScheduleState state{running, {}, 50, tenants};
  state.prompt_token_budget = 30;
  StepPlan plan = plan_step(state, config);
  ASSERT_EQ(plan.slices.size(), 1U);
  EXPECT_EQ(plan.slices[0].n_tokens, 200);
  running[3].n_tokens = 25;  // fits beside them
  plan = plan_step(state, config);
  EXPECT_EQ(plan.slices.size(), 4U);
  running[3].n_tokens = 200;
  const std::vector<ShareTenant> other_way = {{.weight = 1, .service = 100, .n_live = 4},
                                              {.weight = 1, .service = 900, .n_live = 1}};
  state.tenants = other_way;  // served more already: it keeps to their pace
  plan = plan_step(state, config);
  ASSERT_EQ(plan.slices.size(), 4U);
  EXPECT_EQ(plan.slices[3].n_tokens, 30);
}

TEST(PlanStep, prompts_above_their_share_step_aside_for_one_that_waits) {
  const std::vector<ShareTenant> tenants = {{.weight = 1, .service = 900, .n_live = 4},
                                            {.weight = 1, .service = 900, .n_live = 1}};
  std::vector<ScheduleSequence> running = {
      {.id = 1, .rank = 1, .n_tokens = 20, .n_computed = 19, .n_blocks = 2, .n_sole_blocks = 2}};
  for (uint64_t id = 2; id <= 4; ++id)
    running.push_back({.id = id, .rank = id, .n_tokens = 100, .n_blocks = 7, .n_sole_blocks = 7});
  const ScheduleSequence waiting[] = {{.id = 9, .rank = 9, .n_tokens = 60, .tenant = 1}};
  const ScheduleConfig config{
      .step_token_budget = 512, .max_running = 5, .page_tokens = 16, .total_blocks = 100};
  ScheduleState state{running, waiting, 50, tenants};
  state.prompt_token_budget = 70;  // which one of the running prompts would use up
  const StepPlan plan = plan_step(state, config);
  ASSERT_EQ(plan.slices.size(), 2U);
  EXPECT_EQ(plan.slices[0].id, 1U);
  EXPECT_EQ(plan.slices[1].id, 9U);
  EXPECT_EQ(plan.slices[1].n_tokens, 60);
}

TEST(PlanStep, batch_is_kept_open_while_time_tokens_slots_and_pages_allow) {
  const ScheduleSequence waiting[] = {{.id = 1, .rank = 1, .n_tokens = 40},
                                      {.id = 2, .rank = 2, .n_tokens = 40}};
  ScheduleConfig config{.step_token_budget = 100, .max_running = 4, .page_tokens = 16, .total_blocks = 100};
  config.batch_wait_seconds = 0.02;
  ScheduleState state{{}, waiting, 50};
  state.oldest_wait_seconds = 0.015;
  StepPlan plan = plan_step(state, config);
  EXPECT_TRUE(plan.slices.empty());
  EXPECT_NEAR(plan.hold_seconds, 0.005, 1e-12);
  state.oldest_wait_seconds = 0.02;
  EXPECT_EQ(plan_step(state, config).slices.size(), 2U);
  state.oldest_wait_seconds = 0;
  state.free_blocks = 6;  // both fit, a third would not
  EXPECT_EQ(plan_step(state, config).slices.size(), 2U);
  state.free_blocks = 50;
  config.step_token_budget = 80;
  EXPECT_EQ(plan_step(state, config).slices.size(), 2U);
  config.step_token_budget = 100;
  config.max_running = 2;
  EXPECT_EQ(plan_step(state, config).slices.size(), 2U);
}

TEST(ServingOrder, classes_then_least_service_then_arrival) {
  const std::vector<ShareTenant> tenants = {{.weight = 1, .service = 100}, {.weight = 2, .service = 50}};
  const std::vector<ServiceRequest> requests = {
      {.arrival = 0, .service_class = 1, .tenant = 1, .n_tokens = 10},
      {.arrival = 1, .service_class = 0, .tenant = 0, .n_tokens = 10},
      {.arrival = 2, .service_class = 0, .tenant = 1, .n_tokens = 90},  // takes its tenant to 95
      {.arrival = 3, .service_class = 0, .tenant = 1, .n_tokens = 20},  // and to 105
      {.arrival = 4, .service_class = 0, .tenant = 1, .n_tokens = 20},
      {.arrival = 5, .service_class = -7, .tenant = 0, .n_tokens = 0}};
  EXPECT_EQ(serving_order(requests, tenants, 10), (std::vector<size_t>{5, 2, 3, 1, 4, 0}));
  EXPECT_EQ(serving_order(requests, tenants, 2), (std::vector<size_t>{5, 2}));
}

TEST(FairShare, idle_tenant_saves_nothing_up) {
  FairShare share;
  const int32_t a = share.add_tenant(1), b = share.add_tenant(2);
  share.enter(a);
  share.charge(a, 1000);
  share.enter(b);
  EXPECT_EQ(share.tenants()[1].service, 1000);
  share.charge(b, 400);
  share.leave(b);
  share.charge(a, 10);
  share.enter(b);  // what it owes stays
  EXPECT_EQ(share.tenants()[1].service, 1200);
}

TEST(FairShare, what_was_used_alone_is_no_debt) {
  FairShare share;
  const int32_t a = share.add_tenant(1), b = share.add_tenant(1);
  share.enter(a);
  share.charge(a, 5000);
  share.leave(a);
  share.enter(b);
  EXPECT_EQ(share.tenants()[1].service, 5000);
  share.charge(b, 100);
  share.enter(a);
  EXPECT_EQ(share.tenants()[0].service, 5100);
}

TEST(FairShare, burst_of_a_tenant_that_used_little_comes_first) {
  FairShare share(1000);
  const int32_t a = share.add_tenant(1), b = share.add_tenant(2);
  share.enter(a);
  share.charge(a, 5000);
  share.enter(b);
  EXPECT_EQ(share.tenants()[1].service, 4500);  // 1000 tokens at weight 2
  share.charge(b, 1200);
  share.leave(b);
  share.enter(b);
  EXPECT_EQ(share.tenants()[1].service, 5100);  // used up
}

}  // namespace
}  // namespace assay
