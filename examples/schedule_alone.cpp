// The batching policy alone: three requests share a machine with a budget of 64 tokens per step and 12 pages
// of 16 tokens. Prints who computes what in every step.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "schedule/scheduler.h"

struct Request {
  assay::ScheduleSequence sequence;
  int64_t n_last = 0;  // tokens after which it ends
  bool running = false;
};

int main() {
  using namespace assay;
  const ScheduleConfig config = {.step_token_budget = 64,
                                 .max_running = 3,
                                 .page_tokens = 16,
                                 .total_blocks = 12,
                                 .watermark_blocks = 1};
  std::vector<Request> requests = {{{.id = 1, .rank = 1, .n_tokens = 20}, 26},
                                   {{.id = 2, .rank = 2, .n_tokens = 90}, 93},
                                   {{.id = 3, .rank = 3, .n_tokens = 10}, 14}};
  int64_t free_blocks = config.total_blocks;
  for (int step = 1; !requests.empty() && step < 100; ++step) {
    std::vector<ScheduleSequence> running, waiting;
    for (const Request& request : requests) (request.running ? running : waiting).push_back(request.sequence);
    const StepPlan plan = plan_step({running, waiting, free_blocks}, config);
    free_blocks -= plan.taken_blocks;
    fmt::print("step {}: {} tokens:", step, plan.n_tokens);
    for (const PlannedSlice& slice : plan.slices) {
      Request& request =
          *std::ranges::find(requests, slice.id, [](const Request& r) { return r.sequence.id; });
      ScheduleSequence& sequence = request.sequence;
      request.running = true;
      sequence.n_computed += slice.n_tokens;
      sequence.n_sole_blocks = sequence.n_blocks += slice.new_blocks;
      if (sequence.n_computed == sequence.n_tokens) ++sequence.n_tokens;
      fmt::print("  request {} +{} ({}/{})", slice.id, slice.n_tokens, sequence.n_computed, request.n_last);
    }
    fmt::print("  free pages {}\n", free_blocks);
    std::erase_if(requests, [&](const Request& request) {
      const bool done = request.sequence.n_tokens >= request.n_last;
      if (done) free_blocks += request.sequence.n_blocks;
      return done;
    });
  }
  return requests.empty() ? 0 : 1;
}
