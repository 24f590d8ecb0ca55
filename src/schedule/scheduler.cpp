#include "schedule/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace assay {
namespace {

std::vector<const ScheduleSequence*> by_rank(std::span<const ScheduleSequence> sequences) {
  std::vector<const ScheduleSequence*> sorted;
  sorted.reserve(sequences.size());
  for (const ScheduleSequence& sequence : sequences) sorted.push_back(&sequence);
  std::ranges::sort(sorted, {}, &ScheduleSequence::rank);
  return sorted;
}

int64_t pending(const ScheduleSequence& sequence) {
  return sequence.n_tokens - sequence.n_computed;
}

// One call of plan_step.
class Planner {
 public:
  Planner(const ScheduleState& state, const ScheduleConfig& config)
      : config_(config), running_(by_rank(state.running)), free_(state.free_blocks) {}

  void plan_decodes() {
    // running_ shrinks from its end as sequences are preempted, possibly below `i` itself.
    for (size_t i = 0; i < running_.size(); ++i) {
      const ScheduleSequence& sequence = *running_[i];
      CHECK_OP(pending(sequence), >=, 1);
      if (pending(sequence) != 1) continue;
      const int64_t need = missing_blocks(sequence);
      while (free_ < need && i < running_.size()) preempt_last();
      if (i < running_.size()) add(sequence, 1, need, false);
    }
  }

  void plan_prompts() {
    for (const ScheduleSequence* sequence : running_) {
      if (pending(*sequence) == 1 || tokens_left() == 0) continue;
      CHECK_OP(missing_blocks(*sequence), ==, 0);  // its pages came with admission
      add(*sequence, std::min(pending(*sequence), tokens_left()), 0, false);
    }
  }

  void plan_admissions(std::span<const ScheduleSequence> waiting) {
    // Pages were just taken back: admitting someone now would take them from the decodes that ran out.
    if (!plan_.preempted.empty()) return;
    int64_t n_running = std::ssize(running_);
    for (const ScheduleSequence* sequence : by_rank(waiting)) {
      if (n_running >= config_.max_running || tokens_left() == 0) return;
      CHECK_OP(pending(*sequence), >=, 1);
      const int64_t need = missing_blocks(*sequence);
      const int64_t kept_free = n_running == 0 ? 0 : config_.watermark_blocks;
      if (need + sequence->n_sole_blocks + kept_free > free_) return;
      free_ -= sequence->n_sole_blocks;
      plan_.taken_blocks += sequence->n_sole_blocks;
      add(*sequence, std::min(pending(*sequence), tokens_left()), need, true);
      ++n_running;
    }
  }

  StepPlan take() { return std::move(plan_); }

 private:
  int64_t tokens_left() const { return config_.step_token_budget - plan_.n_tokens; }

  int64_t missing_blocks(const ScheduleSequence& sequence) const {
    return std::max<int64_t>(ceil_div(sequence.n_tokens, config_.page_tokens) - sequence.n_blocks, 0);
  }

  void preempt_last() {
    free_ += running_.back()->n_sole_blocks;
    plan_.preempted.push_back(running_.back()->id);
    running_.pop_back();
  }

  void add(const ScheduleSequence& sequence, int64_t n_tokens, int64_t new_blocks, bool admitted) {
    free_ -= new_blocks;
    plan_.taken_blocks += new_blocks;
    plan_.n_tokens += n_tokens;
    plan_.slices.push_back({sequence.id, n_tokens, new_blocks, admitted});
    CHECK_OP(plan_.n_tokens, <=, config_.step_token_budget);
    CHECK_OP(free_, >=, 0);
  }

  const ScheduleConfig& config_;
  std::vector<const ScheduleSequence*> running_;  // ascending rank; preempted ones removed
  int64_t free_;
  StepPlan plan_;
};

}  // namespace

Result<void> validate(const ScheduleConfig& config) {
  const auto positive = [](int64_t value, const char* field) -> Result<void> {
    if (value > 0) return {};
    return fail(ErrorCode::kInvalidArgument, field, "expected a positive number, found {}", value);
  };
  RETURN_IF_ERROR(positive(config.step_token_budget, "step_token_budget"));
  RETURN_IF_ERROR(positive(config.max_running, "max_running"));
  RETURN_IF_ERROR(positive(config.page_tokens, "page_tokens"));
  RETURN_IF_ERROR(positive(config.total_blocks, "total_blocks"));
  if (config.watermark_blocks < 0)
    return fail(ErrorCode::kInvalidArgument, "watermark_blocks", "expected no negative number, found {}",
                config.watermark_blocks);
  if (config.step_token_budget < config.max_running)
    return fail(ErrorCode::kInvalidArgument, "step_token_budget",
                "expected at least max_running ({}), or decodes would wait, found {}", config.max_running,
                config.step_token_budget);
  return {};
}

bool admissible(int64_t longest_tokens, const ScheduleConfig& config) {
  return ceil_div(longest_tokens - 1, config.page_tokens) <= config.total_blocks;
}

StepPlan plan_step(const ScheduleState& state, const ScheduleConfig& config) {
  CHECK_OP(std::ssize(state.running), <=, config.max_running);
  Planner planner(state, config);
  planner.plan_decodes();
  planner.plan_prompts();
  planner.plan_admissions(state.waiting);
  return planner.take();
}

}  // namespace assay
