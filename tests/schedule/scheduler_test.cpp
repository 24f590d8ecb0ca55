// The policy against an independent account of pages (paged_world.h), and its decisions one by one.
#include "schedule/scheduler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "schedule/paged_world.h"

namespace assay {
namespace {

using test::Job;
using test::PagedWorld;

ScheduleConfig config_of(int64_t budget, int64_t max_running, int64_t page_tokens, int64_t blocks,
                         int64_t watermark = 0) {
  return {.step_token_budget = budget,
          .max_running = max_running,
          .page_tokens = page_tokens,
          .total_blocks = blocks,
          .watermark_blocks = watermark};
}

struct Workload {
  ScheduleConfig config;
  std::vector<Job> jobs;  // by arrival
};

Workload random_workload(bool share_prefixes) {
  Workload workload;
  ScheduleConfig& config = workload.config;
  config.max_running = *rc::gen::inRange<int64_t>(1, 9);
  config.step_token_budget = config.max_running + *rc::gen::inRange<int64_t>(0, 40);
  config.page_tokens = *rc::gen::element<int64_t>(1, 2, 4, 16);
  config.total_blocks = *rc::gen::inRange<int64_t>(4, 60);
  config.watermark_blocks = *rc::gen::inRange<int64_t>(0, 6);
  const int64_t n_jobs = *rc::gen::inRange<int64_t>(1, 25);
  int64_t step = 0;
  for (int64_t i = 0; i < n_jobs; ++i) {
    Job job;
    job.arrival_step = step += *rc::gen::inRange<int64_t>(0, 4);
    const int64_t longest = config.total_blocks * config.page_tokens + 1;
    const int64_t total = *rc::gen::inRange<int64_t>(2, std::min<int64_t>(longest, 150) + 1);
    job.n_prompt = *rc::gen::inRange<int64_t>(1, total);
    job.n_output = total - job.n_prompt;
    job.prefix_group = share_prefixes ? *rc::gen::inRange<int64_t>(-1, 3) : -1;
    RC_ASSERT(admissible(total, config));
    workload.jobs.push_back(job);
  }
  return workload;
}

// What must hold for every single plan, told from the world before it is applied.
void check_plan(const PagedWorld& world, const StepPlan& plan, const ScheduleConfig& config) {
  int64_t n_tokens = 0;
  std::set<uint64_t> sliced, preempted(plan.preempted.begin(), plan.preempted.end());
  for (const PlannedSlice& slice : plan.slices) {
    n_tokens += slice.n_tokens;
    RC_ASSERT(sliced.insert(slice.id).second);
    RC_ASSERT(!preempted.contains(slice.id));
  }
  RC_ASSERT(n_tokens == plan.n_tokens);
  RC_ASSERT(n_tokens <= config.step_token_budget);
  if (!world.running().empty()) RC_ASSERT(!preempted.contains(*world.running().begin()));
  for (uint64_t id : world.running()) {
    if (world.decodes(id)) RC_ASSERT(sliced.contains(id) || preempted.contains(id));
    for (uint64_t victim : preempted)  // nobody of higher rank keeps pages while a lower one loses them
      if (id > victim) RC_ASSERT(preempted.contains(id));
  }
}

// Runs the workload to its end; the number of steps is bounded by what each step must achieve.
PagedWorld run(const Workload& workload) {
  PagedWorld world(workload.config);
  size_t next = 0;
  int64_t idle_steps = 0;
  for (int64_t step = 0; world.finished().size() < workload.jobs.size(); ++step) {
    while (next < workload.jobs.size() && workload.jobs[next].arrival_step <= step) {
      world.arrive(next, workload.jobs[next]);
      ++next;
    }
    const StepPlan plan = world.plan();
    check_plan(world, plan, workload.config);
    const bool somebody = !world.running().empty() || !world.waiting().empty();
    idle_steps = somebody && plan.slices.empty() ? idle_steps + 1 : 0;
    RC_ASSERT(idle_steps < 2);
    const std::string wrong = world.apply(plan);
    if (!wrong.empty()) RC_FAIL(wrong);
    RC_ASSERT(std::ssize(world.running()) <= workload.config.max_running);
    RC_ASSERT(step < 100000);
  }
  RC_ASSERT(world.free_blocks() == workload.config.total_blocks);
  return world;
}

RC_GTEST_PROP(PlanStep, random_workload_finishes_within_budgets, ()) {
  const PagedWorld world = run(random_workload(false));
  RC_TAG(world.n_preemptions > 0 ? "preempting" : "without preemption");
}

RC_GTEST_PROP(PlanStep, shared_prefixes_finish_within_budgets, ()) {
  const PagedWorld world = run(random_workload(true));
  RC_TAG(world.n_shared_blocks > 0 ? "sharing" : "without sharing");
}

RC_GTEST_PROP(PlanStep, same_state_gives_same_plan, ()) {
  const Workload workload = random_workload(true);
  PagedWorld world(workload.config);
  for (size_t i = 0; i < workload.jobs.size(); ++i) world.arrive(i, workload.jobs[i]);
  for (int step = 0; step < 20; ++step) {
    const StepPlan first = world.plan();
    const StepPlan second = world.plan();
    RC_ASSERT(first.preempted == second.preempted);
    RC_ASSERT(first.slices.size() == second.slices.size());
    for (size_t i = 0; i < first.slices.size(); ++i) {
      RC_ASSERT(first.slices[i].id == second.slices[i].id);
      RC_ASSERT(first.slices[i].n_tokens == second.slices[i].n_tokens);
    }
    RC_ASSERT(world.apply(first).empty());
  }
}

RC_GTEST_PROP(PlanStep, equal_jobs_finish_in_arrival_order, ()) {
  Workload workload = random_workload(false);
  for (Job& job : workload.jobs) {
    job.n_prompt = workload.jobs[0].n_prompt;
    job.n_output = workload.jobs[0].n_output;
  }
  const PagedWorld world = run(workload);
  RC_ASSERT(std::ranges::is_sorted(world.finished()));
}

TEST(PlanStep, decodes_come_before_prompts_and_prompts_share_the_rest) {
  const ScheduleSequence running[] = {
      {.id = 1, .rank = 1, .n_tokens = 100, .n_computed = 20, .n_blocks = 7, .n_sole_blocks = 7},
      {.id = 2, .rank = 2, .n_tokens = 33, .n_computed = 32, .n_blocks = 3, .n_sole_blocks = 3},
      {.id = 3, .rank = 3, .n_tokens = 50, .n_computed = 0, .n_blocks = 4, .n_sole_blocks = 4},
  };
  const StepPlan plan = plan_step({running, {}, 10}, config_of(96, 4, 16, 30));
  ASSERT_EQ(plan.slices.size(), 3U);
  EXPECT_EQ(plan.slices[0].id, 2U);
  EXPECT_EQ(plan.slices[0].n_tokens, 1);
  EXPECT_EQ(plan.slices[1].id, 1U);
  EXPECT_EQ(plan.slices[1].n_tokens, 80);
  EXPECT_EQ(plan.slices[2].id, 3U);
  EXPECT_EQ(plan.slices[2].n_tokens, 15);
  EXPECT_EQ(plan.n_tokens, 96);
  EXPECT_EQ(plan.taken_blocks, 0);
}

TEST(PlanStep, decode_without_page_preempts_the_latest_arrival) {
  const ScheduleSequence running[] = {
      {.id = 10, .rank = 1, .n_tokens = 33, .n_computed = 32, .n_blocks = 2, .n_sole_blocks = 2},
      {.id = 11, .rank = 2, .n_tokens = 33, .n_computed = 32, .n_blocks = 2, .n_sole_blocks = 2},
      {.id = 12, .rank = 3, .n_tokens = 20, .n_computed = 19, .n_blocks = 2, .n_sole_blocks = 2},
  };
  const ScheduleSequence waiting[] = {{.id = 13, .rank = 4, .n_tokens = 1}};
  const StepPlan plan = plan_step({running, waiting, 1}, config_of(64, 4, 16, 7));
  EXPECT_EQ(plan.preempted, std::vector<uint64_t>{12});
  ASSERT_EQ(plan.slices.size(), 2U);  // nobody is admitted in a step that preempts
  EXPECT_EQ(plan.slices[0].id, 10U);
  EXPECT_EQ(plan.slices[1].id, 11U);
  EXPECT_EQ(plan.taken_blocks, 2);
}

TEST(PlanStep, latest_arrival_without_page_preempts_itself) {
  const ScheduleSequence running[] = {
      {.id = 1, .rank = 1, .n_tokens = 20, .n_computed = 19, .n_blocks = 2, .n_sole_blocks = 2},
      {.id = 2, .rank = 2, .n_tokens = 17, .n_computed = 16, .n_blocks = 1, .n_sole_blocks = 1},
  };
  const StepPlan plan = plan_step({running, {}, 0}, config_of(64, 4, 16, 3));
  EXPECT_EQ(plan.preempted, std::vector<uint64_t>{2});
  ASSERT_EQ(plan.slices.size(), 1U);
  EXPECT_EQ(plan.slices[0].id, 1U);
}

TEST(PlanStep, big_prompt_in_front_is_not_overtaken) {
  const ScheduleSequence running[] = {
      {.id = 1, .rank = 1, .n_tokens = 20, .n_computed = 19, .n_blocks = 2, .n_sole_blocks = 2}};
  const ScheduleSequence waiting[] = {{.id = 2, .rank = 2, .n_tokens = 200},
                                      {.id = 3, .rank = 3, .n_tokens = 4}};
  const StepPlan plan = plan_step({running, waiting, 8}, config_of(64, 4, 16, 13));
  ASSERT_EQ(plan.slices.size(), 1U);
  EXPECT_EQ(plan.slices[0].id, 1U);
}

TEST(PlanStep, watermark_holds_back_admission_only_while_others_run) {
  const ScheduleSequence waiting[] = {{.id = 2, .rank = 2, .n_tokens = 64}};
  const ScheduleSequence running[] = {
      {.id = 1, .rank = 1, .n_tokens = 20, .n_computed = 19, .n_blocks = 2, .n_sole_blocks = 2}};
  const ScheduleConfig config = config_of(512, 4, 16, 7, 2);
  EXPECT_EQ(plan_step({running, waiting, 5}, config).slices.size(), 1U);
  EXPECT_EQ(plan_step({{}, waiting, 5}, config).slices.size(), 1U);
  EXPECT_EQ(plan_step({running, waiting, 6}, config).slices.size(), 2U);
}

TEST(PlanStep, cached_prefix_costs_only_its_idle_blocks) {
  const ScheduleSequence shared = {
      .id = 2, .rank = 2, .n_tokens = 64, .n_computed = 48, .n_blocks = 3, .n_sole_blocks = 1};
  const ScheduleConfig config = config_of(512, 4, 16, 7);
  const StepPlan plan = plan_step({{}, {&shared, 1}, 2}, config);
  ASSERT_EQ(plan.slices.size(), 1U);
  EXPECT_EQ(plan.slices[0].n_tokens, 16);
  EXPECT_EQ(plan.slices[0].new_blocks, 1);
  EXPECT_EQ(plan.taken_blocks, 2);
  EXPECT_TRUE(plan_step({{}, {&shared, 1}, 1}, config).slices.empty());
}

TEST(ScheduleConfig, impossible_values_are_refused_by_name) {
  EXPECT_TRUE(validate(config_of(16, 16, 16, 1)).has_value());
  for (const auto& [config, field] : std::vector<std::pair<ScheduleConfig, std::string>>{
           {config_of(0, 1, 16, 1), "step_token_budget"},
           {config_of(15, 16, 16, 1), "step_token_budget"},
           {config_of(16, 0, 16, 1), "max_running"},
           {config_of(16, 4, -1, 1), "page_tokens"},
           {config_of(16, 4, 16, 0), "total_blocks"},
           {config_of(16, 4, 16, 1, -1), "watermark_blocks"}}) {
    const Result<void> result = validate(config);
    ASSERT_FALSE(result.has_value()) << field;
    EXPECT_EQ(result.error().where, field);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Admissible, last_token_needs_no_page) {
  const ScheduleConfig config = config_of(16, 4, 16, 2);
  EXPECT_TRUE(admissible(33, config));
  EXPECT_FALSE(admissible(34, config));
}

}  // namespace
}  // namespace assay
