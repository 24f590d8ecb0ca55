// A small simulation in virtual time over the same policy that serves: the queueing figures that it gives
// must be those that theory and hand calculation give.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/stats.h"
#include "schedule/paged_world.h"
#include "schedule/scheduler.h"

namespace assay {
namespace {

using test::Job;
using test::PagedWorld;

// A step costs a fixed part and a part per token, as a memory-bound forward pass does.
constexpr double kStepSeconds = 0.010;
constexpr double kTokenSeconds = 0.0001;

struct Outcome {
  std::vector<double> finish_seconds;  // by job
  int64_t n_steps = 0;
};

Outcome simulate(const std::vector<double>& arrival_seconds, const std::vector<Job>& jobs,
                 const ScheduleConfig& config) {
  PagedWorld world(config);
  VirtualClock clock;
  Outcome outcome;
  outcome.finish_seconds.resize(jobs.size());
  size_t next = 0, reported = 0;
  while (world.finished().size() < jobs.size()) {
    if (world.running().empty() && world.waiting().empty())
      clock.set(std::max(clock.now_seconds(), arrival_seconds[next]));
    while (next < jobs.size() && arrival_seconds[next] <= clock.now_seconds()) {
      world.arrive(next, jobs[next]);
      ++next;
    }
    const StepPlan plan = world.plan();
    EXPECT_EQ(world.apply(plan), "");
    clock.advance(kStepSeconds + kTokenSeconds * static_cast<double>(plan.n_tokens));
    ++outcome.n_steps;
    for (; reported < world.finished().size(); ++reported)
      outcome.finish_seconds[world.finished()[reported]] = clock.now_seconds();
  }
  return outcome;
}

TEST(Simulation, one_sequence_takes_the_time_of_its_steps) {
  const ScheduleConfig config = {
      .step_token_budget = 64, .max_running = 4, .page_tokens = 16, .total_blocks = 100};
  const Outcome outcome = simulate({1.5}, {{.n_prompt = 200, .n_output = 10}}, config);
  // 200 prompt tokens in pieces of 64, 64, 64, 8; the last piece gives the first of ten tokens.
  EXPECT_EQ(outcome.n_steps, 4 + 9);
  EXPECT_NEAR(outcome.finish_seconds[0], 1.5 + 13 * kStepSeconds + 209 * kTokenSeconds, 1e-9);
}

TEST(Simulation, batching_multiplies_throughput_by_the_shared_step_cost) {
  const std::vector<Job> jobs(8, {.n_prompt = 1, .n_output = 100});
  const std::vector<double> arrivals(8, 0.0);
  ScheduleConfig config = {.step_token_budget = 64, .max_running = 1, .page_tokens = 16, .total_blocks = 100};
  const Outcome alone = simulate(arrivals, jobs, config);
  config.max_running = 8;
  const Outcome together = simulate(arrivals, jobs, config);
  EXPECT_NEAR(alone.finish_seconds[7], 800 * (kStepSeconds + kTokenSeconds), 1e-9);
  EXPECT_NEAR(together.finish_seconds[7], 100 * (kStepSeconds + 8 * kTokenSeconds), 1e-9);
}

TEST(Simulation, decode_gap_beside_a_long_prompt_is_bounded_by_the_token_budget) {
  // The short job decodes while 4,000 prompt tokens are prefilled: no step may take longer than a full
  // budget.
  const ScheduleConfig config = {
      .step_token_budget = 128, .max_running = 4, .page_tokens = 16, .total_blocks = 1000};
  const Outcome outcome =
      simulate({0, 0.05}, {{.n_prompt = 1, .n_output = 40}, {.n_prompt = 4000, .n_output = 1}}, config);
  EXPECT_LE(outcome.finish_seconds[0], 40 * (kStepSeconds + 128 * kTokenSeconds) + 1e-9);
}

TEST(Simulation, single_server_queue_matches_pollaczek_khinchine) {
  // One slot and a constant service time S is an M/D/1 queue: mean wait = rho S / (2 (1 - rho)).
  const ScheduleConfig config = {
      .step_token_budget = 64, .max_running = 1, .page_tokens = 16, .total_blocks = 100};
  const std::vector<Job> jobs(20000, {.n_prompt = 10, .n_output = 1});
  const double service = kStepSeconds + 10 * kTokenSeconds;
  const double rho = 0.6;
  Random random(7, "arrivals");
  std::vector<double> arrivals;
  double now = 0;
  for (size_t i = 0; i < jobs.size(); ++i) arrivals.push_back(now += random.exponential(rho / service));
  const Outcome outcome = simulate(arrivals, jobs, config);
  std::vector<double> waits;
  for (size_t i = 0; i < jobs.size(); ++i) waits.push_back(outcome.finish_seconds[i] - arrivals[i] - service);
  const double expected = rho * service / (2 * (1 - rho));
  // 20,000 correlated waits: the standard error of the mean is about 2 % here (batch means of 20 x 1,000).
  std::vector<double> batch_means;
  for (size_t i = 0; i < waits.size(); i += 1000)
    batch_means.push_back(mean(std::span(waits).subspan(i, 1000)));
  const double error = standard_deviation(batch_means) / std::sqrt(static_cast<double>(batch_means.size()));
  EXPECT_LT(error / expected, 0.1);
  EXPECT_NEAR(mean(waits), expected, 4 * error);
}

}  // namespace
}  // namespace assay
