#include "engine/step_planner.h"

#include <algorithm>
#include <limits>

namespace assay {
namespace {

// Beyond the free slots: those for which somebody may have to give way, and who passes one that is kept back.
constexpr size_t kMoreCandidates = 4;
constexpr int64_t kLeastPromptTokens = 16;  // of a step: less would waste the pass over the weights
constexpr double kAutomaticBoundSeconds = 0.05;
constexpr double kAutomaticBoundSteps = 2;  // decode steps
constexpr double kBoundMargin = 0.9;        // steps are aimed below the bound: they vary
constexpr int kProtectedAfter = 3;          // preemptions

}  // namespace

StepPlanner::StepPlanner(PlannerSettings settings, KvPool& pool, PrefixIndex* prefixes)
    : settings_(settings),
      pool_(pool),
      prefixes_(prefixes),
      candidate_references_(static_cast<size_t>(pool.n_blocks())) {}

std::span<const int32_t> StepPlanner::shareable_tokens(const Sequence& sequence, int64_t n) const {
  if (!settings_.generated_pages_shared) n = std::min(n, sequence.n_prompt);
  return std::span(sequence.tokens).first(static_cast<size_t>(n));
}

// What one stream may wait for the prompts of others: the bound that was asked for, else 50 ms, on slow
// models two decode steps.
double StepPlanner::itl_bound(const StepTimeModel& times, int64_t n_decodes) const {
  if (settings_.itl_bound_seconds > 0) return settings_.itl_bound_seconds * kBoundMargin;
  return std::max(kAutomaticBoundSeconds, kAutomaticBoundSteps * times.decode_step_seconds(n_decodes)) *
         kBoundMargin;
}

// The class of every sequence, as of now.
void StepPlanner::classify(SequenceQueue& running, SequenceQueue& waiting, double now) {
  int most_urgent = std::numeric_limits<int>::max();
  for (const SequenceQueue* queue : {&running, &waiting})
    for (const auto& [id, sequence] : *queue) most_urgent = std::min(most_urgent, sequence->share.priority);
  for (SequenceQueue* queue : {&running, &waiting})
    for (const auto& [id, sequence] : *queue)
      if (now - sequence->waits_since > settings_.patience_seconds) sequence->overdue = true;
  for (SequenceQueue* queue : {&running, &waiting})
    for (const auto& [id, sequence] : *queue)
      sequence->service_class = service_class(sequence->share.priority, sequence->overdue, most_urgent);
}

// Whether a running sequence, or a candidate before it, computes pages that this one would find later.
bool StepPlanner::is_being_computed(const Sequence& sequence, const SequenceQueue& running) const {
  if (prefixes_ == nullptr || !sequence.may_use_prefixes()) return false;
  const int64_t page = settings_.schedule.page_tokens;
  const int64_t found = std::ssize(sequence.pages.blocks());
  const auto gives_more = [&](const Sequence& other) {
    if (other.prefix_salt != sequence.prefix_salt || other.n_computed >= other.n_prompt) return false;
    const auto own = shareable_tokens(sequence, sequence.n_tokens() - 1);
    const auto theirs = std::span(other.tokens).first(static_cast<size_t>(other.n_prompt));
    if (std::ssize(own) < (found + 1) * page || std::ssize(theirs) < (found + 1) * page) return false;
    const auto differ = std::ranges::mismatch(own, theirs).in1;
    return (differ - own.begin()) / page > found;
  };
  return std::ranges::any_of(running, [&](const auto& entry) { return gives_more(*entry.second); }) ||
         std::ranges::any_of(candidates_, [&](const Sequence* other) { return gives_more(*other); });
}

// Takes references to the pages that hold its prefix, so that they stay until the plan is applied. Those that
// nobody but candidates holds count as taken off the free ones for each of them: which will be admitted is
// not known yet.
void StepPlanner::look_up_prefix(Sequence& sequence) {
  sequence.n_idle_found = 0;
  if (prefixes_ == nullptr || !sequence.may_use_prefixes() || sequence.is_swapped()) return;
  // The last token must be computed: its hidden state is wanted.
  const std::vector<int32_t> blocks =
      prefixes_->match(shareable_tokens(sequence, sequence.n_tokens() - 1), sequence.prefix_salt);
  sequence.pages.adopt(blocks);
  for (const int32_t block : blocks) {
    int32_t& others = candidate_references_[static_cast<size_t>(block)];
    if (pool_.reference_count(block) == 2 + others) ++sequence.n_idle_found;
    ++others;
  }
}

// Lets go of what a candidate found and was not admitted with.
void StepPlanner::forget_prefix(Sequence& sequence) {
  for (const int32_t block : sequence.pages.blocks()) --candidate_references_[static_cast<size_t>(block)];
  if (!sequence.is_running) sequence.pages.clear();
}

void StepPlanner::choose_candidates(SequenceQueue& waiting, const TenantLedger& ledger, size_t n) {
  requests_.clear();
  requested_.clear();
  for (const auto& [id, sequence] : waiting) {
    if (sequence->paused) {
      paused_.push_back(sequence.get());
      continue;
    }
    requests_.push_back(
        {id, sequence->service_class, sequence->tenant, sequence->n_tokens() - sequence->n_computed});
    requested_.push_back(sequence.get());
  }
  const std::vector<size_t> order = serving_order(requests_, ledger.shares(), n);
  for (const size_t index : order) candidates_.push_back(requested_[index]);
}

ScheduleSequence StepPlanner::view(const Sequence& sequence, const ReturnRates& rates) const {
  const auto blocks = sequence.pages.blocks();
  const bool holds = sequence.is_running || sequence.paused;
  ScheduleSequence view{.id = sequence.id, .rank = sequence.id, .n_tokens = sequence.n_tokens()};
  view.n_computed = sequence.n_computed;
  view.n_blocks = std::ssize(blocks);
  view.service_class = sequence.service_class;
  view.tenant = sequence.tenant;
  view.paused = sequence.paused;
  view.is_protected = sequence.n_preemptions >= kProtectedAfter;
  if (holds) {
    // Pages come to be shared through the index only, and it holds one reference itself.
    const int sole_count = prefixes_ != nullptr ? 2 : 1;
    view.n_sole_blocks = std::ranges::count_if(
        blocks, [&](int32_t block) { return pool_.reference_count(block) <= sole_count; });
    view.return_seconds = return_cost(sequence.n_computed, view.n_blocks, rates).seconds();
  } else if (!sequence.is_swapped()) {
    view.n_computed = view.n_blocks * settings_.schedule.page_tokens;
    view.n_sole_blocks = sequence.n_idle_found;
  }
  return view;
}

void StepPlanner::rank(std::vector<ScheduleSequence>& views, const TenantLedger& ledger) {
  requests_.clear();
  for (const ScheduleSequence& view : views)
    requests_.push_back({view.id, view.service_class, view.tenant, view.n_tokens - view.n_computed});
  const std::vector<size_t> order = serving_order(requests_, ledger.shares(), requests_.size());
  for (size_t i = 0; i < order.size(); ++i) views[order[i]].rank = i;
}

StepPlan StepPlanner::plan(SequenceQueue& running, SequenceQueue& waiting, const TenantLedger& ledger,
                           const StepTimeModel& times, const ReturnRates& rates, double now) {
  classify(running, waiting, now);
  const int64_t free_blocks = pool_.n_free() + pool_.n_idle();  // before candidates take references
  paused_.clear();
  candidates_.clear();
  std::vector<Sequence*> in_order;
  const size_t slots = static_cast<size_t>(settings_.schedule.max_running) - running.size();
  choose_candidates(waiting, ledger, slots + kMoreCandidates);
  std::swap(in_order, candidates_);
  for (Sequence* sequence : in_order) {
    look_up_prefix(*sequence);
    if (is_being_computed(*sequence, running)) {
      forget_prefix(*sequence);
    } else {
      candidates_.push_back(sequence);
    }
  }
  // After the look-ups: what a candidate would share does not become free when its holder loses it.
  running_views_.clear();
  waiting_views_.clear();
  int64_t n_decodes = 0;
  for (const auto& [id, sequence] : running) {
    running_views_.push_back(view(*sequence, rates));
    n_decodes += sequence->n_tokens() - sequence->n_computed == 1 ? 1 : 0;
  }
  double oldest_wait = 0;
  for (const Sequence* sequence : candidates_) {
    waiting_views_.push_back(view(*sequence, rates));
    oldest_wait = std::max(oldest_wait, now - sequence->waits_since);
  }
  for (const Sequence* sequence : paused_) waiting_views_.push_back(view(*sequence, rates));
  rank(running_views_, ledger);
  rank(waiting_views_, ledger);
  ScheduleState state{running_views_, waiting_views_, free_blocks, ledger.shares()};
  state.oldest_wait_seconds = oldest_wait;
  state.prompt_token_budget = times.prompt_tokens_within(
      itl_bound(times, n_decodes), n_decodes, kLeastPromptTokens, settings_.schedule.step_token_budget);
  return plan_step(state, settings_.schedule);
}

void StepPlanner::release_candidates() {
  for (Sequence* candidate : candidates_) forget_prefix(*candidate);
  candidates_.clear();
}

}  // namespace assay
