#include "schedule/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "schedule/slot_shares.h"

namespace assay {
namespace {

using Row = std::vector<const ScheduleSequence*>;

Row by_rank(std::span<const ScheduleSequence> sequences) {
  Row sorted;
  sorted.reserve(sequences.size());
  for (const ScheduleSequence& sequence : sequences) sorted.push_back(&sequence);
  std::ranges::sort(sorted, {}, &ScheduleSequence::rank);
  return sorted;
}

int64_t pending(const ScheduleSequence& sequence) {
  return sequence.n_tokens - sequence.n_computed;
}

// Whether `a` comes after `b` in the order of service.
bool is_served_later(const ScheduleSequence& a, const ScheduleSequence& b) {
  return a.service_class != b.service_class ? a.service_class > b.service_class : a.rank > b.rank;
}

// Of [first, end) the one that should lose its pages: of the highest class, the cheapest by block. One that
// lost them often enough loses them only when it is the last in the order of service: so nobody is the
// cheapest for ever.
size_t choose_victim(const Row& row, size_t first) {
  size_t last = first;
  for (size_t i = first + 1; i < row.size(); ++i)
    if (is_served_later(*row[i], *row[last])) last = i;
  if (row[last]->is_protected) return last;
  const auto costs_less = [](const ScheduleSequence& a, const ScheduleSequence& b) {
    const double cost_a = a.return_seconds * static_cast<double>(b.n_sole_blocks);
    const double cost_b = b.return_seconds * static_cast<double>(a.n_sole_blocks);
    return cost_a < cost_b || (cost_a == cost_b && a.rank > b.rank);
  };
  size_t chosen = last;
  for (size_t i = first; i < row.size(); ++i) {
    const bool eligible = !row[i]->is_protected && row[i]->service_class == row[last]->service_class;
    if (eligible && costs_less(*row[i], *row[chosen])) chosen = i;
  }
  return chosen;
}

// One call of plan_step.
class Planner {
 public:
  Planner(const ScheduleState& state, const ScheduleConfig& config)
      : state_(state),
        config_(config),
        shares_(state, config),
        running_(by_rank(state.running)),
        waiting_(by_rank(state.waiting)),
        free_(state.free_blocks) {
    for (const ScheduleSequence* sequence : waiting_)
      if (sequence->paused) paused_.push_back(sequence);
  }

  void plan_decodes() {
    // running_ shrinks as sequences are preempted, possibly by `sequence` itself.
    for (size_t i = 0; i < running_.size();) {
      const ScheduleSequence& sequence = *running_[i];
      CHECK_OP(pending(sequence), >=, 1);
      if (pending(sequence) == 1 && !make_room_for_decode(i)) continue;  // it gave its own pages
      if (pending(sequence) == 1) add(sequence, 1, missing_blocks(sequence), false);
      ++i;
    }
    n_decodes_ = std::ssize(plan_.slices);
  }

  void plan_prompts() {
    for (const ScheduleSequence* sequence : running_) {
      if (pending(*sequence) == 1) continue;
      clear_way_for(*sequence, who_steps_aside(*sequence));
      if (prompt_tokens_left() == 0) continue;
      CHECK_OP(missing_blocks(*sequence), ==, 0);  // its pages came with admission
      add(*sequence, std::min(pending(*sequence), prompt_tokens_left()), 0, false);
    }
  }

  void plan_admissions() {
    // Pages were just taken back: admitting someone now would take them from the decodes that ran out.
    if (!plan_.preempted.empty() || keep_batch_open()) return;
    bool stopped = false;
    for (const ScheduleSequence* sequence : waiting_) {
      CHECK_OP(pending(*sequence), >=, 1);
      // Behind one that finds no tokens or pages only those go on that hold theirs: they will give them back.
      if (was_preempted(*sequence) || (stopped && !sequence->paused)) continue;
      const ScheduleSequence* runner = nullptr;
      if (n_running() >= config_.max_running) {
        runner = who_gives_way(*sequence);
        if (runner == nullptr) continue;
      }
      const Row aside = pending(*sequence) > 1 ? who_steps_aside(*sequence) : Row();
      const bool has_tokens =
          tokens_left(*sequence) > 0 || std::ranges::any_of(aside, [&](const auto* other) {
            return pending(*other) > 1 && planned_tokens(*other) > 0;
          });
      if (has_tokens && make_room_for(*sequence, runner)) {
        clear_way_for(*sequence, aside);
        admit(*sequence);
      } else {
        stopped = true;
      }
    }
    // Only paused sequences hold pages, and none of them could go on.
    if (plan_.slices.empty() && plan_.preempted.empty() && !paused_.empty())
      preempt(paused_, choose_victim(paused_, 0));
  }

  StepPlan take() { return std::move(plan_); }

 private:
  // Whether the same have to give way to both.
  static bool is_like(const ScheduleSequence& sequence, const ScheduleSequence* other) {
    return other != nullptr && sequence.tenant == other->tenant &&
           sequence.service_class == other->service_class;
  }

  int64_t n_running() const { return std::ssize(running_) + n_admitted_; }

  int64_t missing_blocks(const ScheduleSequence& sequence) const {
    return std::max<int64_t>(ceil_div(sequence.n_tokens, config_.page_tokens) - sequence.n_blocks, 0);
  }

  int64_t prompt_tokens_left() const {
    const int64_t left = config_.step_token_budget - plan_.n_tokens;
    if (n_decodes_ == 0 || state_.prompt_token_budget < 0) return left;
    return std::clamp<int64_t>(state_.prompt_token_budget - n_prompt_tokens_, 0, left);
  }
  int64_t tokens_left(const ScheduleSequence& sequence) const {
    return pending(sequence) == 1 ? config_.step_token_budget - plan_.n_tokens : prompt_tokens_left();
  }

  void add(const ScheduleSequence& sequence, int64_t n_tokens, int64_t new_blocks, bool admitted) {
    free_ -= new_blocks;
    plan_.taken_blocks += new_blocks;
    plan_.n_tokens += n_tokens;
    if (pending(sequence) > 1) n_prompt_tokens_ += n_tokens;
    plan_.slices.push_back({sequence.id, n_tokens, new_blocks, admitted});
    CHECK_OP(plan_.n_tokens, <=, config_.step_token_budget);
    CHECK_OP(free_, >=, 0);
  }

  // Takes back what was planned for a running sequence.
  void retract(const ScheduleSequence& sequence) {
    const auto slice = std::ranges::find(plan_.slices, sequence.id, &PlannedSlice::id);
    if (slice == plan_.slices.end()) return;
    free_ += slice->new_blocks;
    plan_.taken_blocks -= slice->new_blocks;
    plan_.n_tokens -= slice->n_tokens;
    if (pending(sequence) > 1)
      n_prompt_tokens_ -= slice->n_tokens;
    else
      --n_decodes_;
    plan_.slices.erase(slice);
  }

  // Those whose tokens of this step this prompt may have: prompts, the last in rank first, then streams.
  Row who_steps_aside(const ScheduleSequence& prompt) {
    Row aside;
    if (pending(prompt) <= prompt_tokens_left() || is_like(prompt, nobody_steps_aside_for_)) return aside;
    for (size_t i = running_.size(); i-- > 0;)
      if (pending(*running_[i]) > 1 && shares_.steps_aside(*running_[i], prompt))
        aside.push_back(running_[i]);
    for (const ScheduleSequence* stream : running_)
      if (pending(*stream) == 1 && shares_.steps_aside(*stream, prompt)) aside.push_back(stream);
    if (aside.empty()) nobody_steps_aside_for_ = &prompt;  // nor for its like
    return aside;
  }

  // Takes tokens from those that step aside: of prompts as many as are missing; of streams, whose pace would
  // cut the prompt, all.
  void clear_way_for(const ScheduleSequence& prompt, const Row& aside) {
    for (const ScheduleSequence* other : aside)
      if (pending(*other) > 1 && pending(prompt) > prompt_tokens_left()) retract(*other);
    if (pending(prompt) <= prompt_tokens_left()) return;
    for (const ScheduleSequence* other : aside)
      if (pending(*other) == 1) retract(*other);
  }

  void preempt(Row& row, size_t index) {
    const ScheduleSequence& victim = *row[index];
    free_ += victim.n_sole_blocks;
    plan_.preempted.push_back(victim.id);
    if (&row == &running_) shares_.leave(victim);
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(index));
  }

  bool was_preempted(const ScheduleSequence& sequence) const {
    return std::ranges::find(plan_.preempted, sequence.id) != plan_.preempted.end();
  }

  // False when the decode itself lost its pages. The first of the row is spared as long as there are others.
  bool make_room_for_decode(size_t& i) {
    const ScheduleSequence& sequence = *running_[i];
    while (free_ < missing_blocks(sequence)) {
      if (!paused_.empty()) {
        preempt(paused_, choose_victim(paused_, 0));
        continue;
      }
      // Those before `i` have their slice; those after it, and itself, may lose their pages.
      const size_t victim = choose_victim(running_, i == 0 && running_.size() > 1 ? 1 : i);
      preempt(running_, victim);
      if (victim == i) return false;
    }
    return true;
  }

  bool keep_batch_open() {
    if (config_.batch_wait_seconds <= state_.oldest_wait_seconds || !running_.empty() || waiting_.empty())
      return false;
    if (std::ssize(waiting_) >= config_.max_running) return false;
    int64_t n_tokens = 0, n_blocks = 0;
    for (const ScheduleSequence* sequence : waiting_) {
      n_tokens += pending(*sequence);
      n_blocks += missing_blocks(*sequence) + (sequence->paused ? 0 : sequence->n_sole_blocks);
    }
    if (n_tokens >= config_.step_token_budget || n_blocks + config_.watermark_blocks >= free_) return false;
    plan_.hold_seconds = config_.batch_wait_seconds - state_.oldest_wait_seconds;
    return true;
  }

  // The running sequence of the highest rank that has to let this one have its slot, or null.
  const ScheduleSequence* who_gives_way(const ScheduleSequence& comer) {
    if (is_like(comer, nobody_for_)) return nullptr;
    for (size_t i = running_.size(); i-- > 0;)
      if (shares_.gives_way(*running_[i], comer, false)) return running_[i];
    nobody_for_ = &comer;
    return nullptr;
  }

  int64_t blocks_for(const ScheduleSequence& comer) const {
    return missing_blocks(comer) + (comer.paused ? 0 : comer.n_sole_blocks);
  }

  // Pauses `runner` (or null), and takes the pages that are missing from those that have to give way. False,
  // with nothing changed, when that is not enough.
  bool make_room_for(const ScheduleSequence& comer, const ScheduleSequence* runner) {
    const bool others_run = n_running() > (runner != nullptr ? 1 : 0);
    const int64_t need = blocks_for(comer) + (others_run ? config_.watermark_blocks : 0);
    int64_t could_be_free = free_;
    Row victims;
    const auto consider = [&](const ScheduleSequence* other) {
      if (other == &comer || could_be_free >= need || !shares_.gives_way(*other, comer, true)) return;
      could_be_free += other->n_sole_blocks + (other == runner ? 0 : planned_blocks(*other));
      victims.push_back(other);
    };
    if (runner != nullptr) could_be_free += planned_blocks(*runner);
    std::for_each(paused_.rbegin(), paused_.rend(), consider);
    std::for_each(running_.rbegin(), running_.rend(), consider);
    if (could_be_free < need) return false;
    if (runner != nullptr && std::ranges::find(victims, runner) == victims.end()) pause(*runner);
    for (const ScheduleSequence* victim : victims) take_pages(*victim);
    return true;
  }

  int64_t planned_tokens(const ScheduleSequence& sequence) const {
    const auto slice = std::ranges::find(plan_.slices, sequence.id, &PlannedSlice::id);
    return slice == plan_.slices.end() ? 0 : slice->n_tokens;
  }

  int64_t planned_blocks(const ScheduleSequence& sequence) const {
    const auto slice = std::ranges::find(plan_.slices, sequence.id, &PlannedSlice::id);
    return slice == plan_.slices.end() ? 0 : slice->new_blocks;
  }

  void pause(const ScheduleSequence& runner) {
    retract(runner);
    shares_.leave(runner);
    plan_.paused.push_back(runner.id);
    std::erase(running_, &runner);
    paused_.push_back(&runner);
  }

  void take_pages(const ScheduleSequence& victim) {
    retract(victim);
    std::erase(plan_.paused, victim.id);
    Row& row = std::ranges::find(running_, &victim) != running_.end() ? running_ : paused_;
    preempt(row, static_cast<size_t>(std::ranges::find(row, &victim) - row.begin()));
  }

  void admit(const ScheduleSequence& sequence) {
    const int64_t shared = sequence.paused ? 0 : sequence.n_sole_blocks;
    free_ -= shared;
    plan_.taken_blocks += shared;
    const int64_t left = tokens_left(sequence);
    add(sequence, std::min(pending(sequence), left), missing_blocks(sequence), true);
    if (sequence.paused) std::erase(paused_, &sequence);
    shares_.take(sequence);
    ++n_admitted_;
    nobody_for_ = nullptr;  // shares have changed
    nobody_steps_aside_for_ = nullptr;
  }

  const ScheduleState& state_;
  const ScheduleConfig& config_;
  schedule_internal::SlotShares shares_;
  Row running_;  // ascending rank; preempted and paused ones removed
  Row waiting_;  // ascending rank
  Row paused_;   // hold pages without running
  int64_t free_;
  // Those for whose like nobody was found to give way, or was left to step aside; null: not looked yet.
  const ScheduleSequence* nobody_for_ = nullptr;
  const ScheduleSequence* nobody_steps_aside_for_ = nullptr;
  int64_t n_admitted_ = 0;
  int64_t n_decodes_ = 0;
  int64_t n_prompt_tokens_ = 0;
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
  if (!(config.batch_wait_seconds >= 0))
    return fail(ErrorCode::kInvalidArgument, "batch_wait", "expected no negative time, found {} s",
                config.batch_wait_seconds);
  if (config.fairness_tokens < 0)
    return fail(ErrorCode::kInvalidArgument, "fairness_tokens", "expected no negative number, found {}",
                config.fairness_tokens);
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
  planner.plan_admissions();
  return planner.take();
}

}  // namespace assay
