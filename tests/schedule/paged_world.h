// An independent account of sequences and pages for the scheduler's tests: real block ids, reference counts
// and a prefix cache, none of which the scheduler sees. It applies a plan literally and fails where the plan
// asks for what is not there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/fair_share.h"
#include "schedule/scheduler.h"

namespace assay::test {

struct Job {
  int64_t arrival_step = 0;
  int64_t n_prompt = 1;
  int64_t n_output = 1;
  int64_t prefix_group = -1;  // jobs of one group share all prompt text, -1: none
  int service_class = 0;
  int32_t tenant = 0;
  double return_cost = 0;  // per computed token
};

class PagedWorld {
 public:
  // Weights of the tenants that jobs name.
  explicit PagedWorld(const ScheduleConfig& config, const std::vector<double>& weights = {1})
      : config_(config) {
    for (const double weight : weights) share_.add_tenant(weight);
    served_tokens.resize(weights.size());
    for (int64_t block = 0; block < config.total_blocks; ++block) unused_.insert(block);
  }

  void arrive(uint64_t id, const Job& job) {
    live_.emplace(id, Live{.job = job, .n_tokens = job.n_prompt});
    waiting_.insert(id);
    share_.enter(job.tenant);
    in_arrival_order_ = in_arrival_order_ && job.tenant == 0 && job.service_class == 0;
  }

  // The scheduler's view. Ids are arrival numbers.
  StepPlan plan() const {
    std::vector<ScheduleSequence> running, waiting;
    for (uint64_t id : running_) running.push_back(view_held(id));
    for (uint64_t id : waiting_) waiting.push_back(paused_.contains(id) ? view_held(id) : view_waiting(id));
    rank(running);
    rank(waiting);
    // The order of the spans must not matter.
    std::ranges::reverse(running);
    ScheduleState state{running, waiting, free_blocks(), share_.tenants()};
    state.prompt_token_budget = prompt_token_budget;
    state.oldest_wait_seconds = oldest_wait_seconds;
    return plan_step(state, config_);
  }

  // Applies the plan; returns what was wrong with it, or "".
  std::string apply(const StepPlan& plan) {
    const int64_t free_before = free_blocks();
    int64_t shared = 0;  // taken off the free blocks by sharing
    for (const PlannedSlice& slice : plan.slices)
      if (slice.admitted) shared += share_prefix(slice.id);
    for (uint64_t id : plan.preempted) {
      if (!running_.contains(id) && !paused_.contains(id)) return "preempted one that holds nothing";
      give_back(id);
      running_.erase(id);
      paused_.erase(id);
      waiting_.insert(id);
      ++live_.at(id).n_preemptions;
      ++n_preemptions;
    }
    for (uint64_t id : plan.paused) {
      if (running_.erase(id) == 0) return "paused one that does not run";
      waiting_.insert(id);
      paused_.insert(id);
      ++n_pauses;
    }
    const int64_t freed = free_blocks() + shared - free_before;
    for (const PlannedSlice& slice : plan.slices)
      if (slice.admitted) {
        if (std::string wrong = admit(slice.id); !wrong.empty()) return wrong;
      }
    for (const PlannedSlice& slice : plan.slices)
      if (std::string wrong = advance(slice); !wrong.empty()) return wrong;
    if (exact() && free_before + freed - plan.taken_blocks != free_blocks()) return "blocks taken: wrong sum";
    if (free_before + freed - plan.taken_blocks > free_blocks()) return "took more blocks than planned";
    finish_done(plan);
    return "";
  }

  int64_t free_blocks() const {
    return std::ssize(unused_) + std::ranges::count_if(cached_, [&](const auto& entry) {
             return !holders_.contains(entry.second);
           });
  }

  bool decodes(uint64_t id) const { return live_.at(id).n_tokens - live_.at(id).n_computed == 1; }
  const std::set<uint64_t>& running() const { return running_; }
  const std::set<uint64_t>& waiting() const { return waiting_; }
  const std::vector<uint64_t>& finished() const { return finished_; }
  int64_t n_computed(uint64_t id) const { return live_.at(id).n_computed; }

  const Job& job(uint64_t id) const { return live_.at(id).job; }
  bool paused(uint64_t id) const { return paused_.contains(id); }
  // From now on it counts as overdue.
  void set_overdue(uint64_t id) {
    int most_urgent = live_.at(id).job.service_class;
    for (const auto& [other, live] : live_) most_urgent = std::min(most_urgent, live.job.service_class);
    int& own = live_.at(id).job.service_class;
    own = service_class(own, true, most_urgent);
  }
  const FairShare& share() const { return share_; }

  int64_t prompt_token_budget = -1;
  double oldest_wait_seconds = 0;
  int64_t n_preemptions = 0;
  int64_t n_pauses = 0;
  int64_t n_shared_blocks = 0;
  std::vector<int64_t> served_tokens;  // computed, by tenant

 private:
  struct Live {
    Job job;
    int64_t n_tokens = 0;
    int64_t n_computed = 0;
    std::vector<int64_t> blocks;
    int64_t n_preemptions = 0;
  };
  using PrefixKey = std::pair<int64_t, int64_t>;  // group, page number

  // Without shared pages the plan's sums are exact; with them, upper bounds.
  bool exact() const { return n_shared_blocks == 0; }

  ScheduleSequence view(uint64_t id) const {
    const Live& live = live_.at(id);
    ScheduleSequence view{.id = id, .rank = id, .n_tokens = live.n_tokens, .n_computed = live.n_computed};
    view.service_class = live.job.service_class;
    view.tenant = live.job.tenant;
    view.return_seconds = live.job.return_cost * static_cast<double>(live.n_computed);
    view.is_protected = live.n_preemptions >= 3;
    return view;
  }

  ScheduleSequence view_held(uint64_t id) const {
    const Live& live = live_.at(id);
    ScheduleSequence held = view(id);
    held.n_blocks = std::ssize(live.blocks);
    // What a waiting one would share is kept for it, should it be admitted in the step that frees the rest.
    const std::set<int64_t> wanted = wanted_by_waiting();
    held.n_sole_blocks = std::ranges::count_if(
        live.blocks, [&](int64_t b) { return holders_.at(b) == 1 && !wanted.contains(b); });
    held.paused = paused_.contains(id);
    return held;
  }

  ScheduleSequence view_waiting(uint64_t id) const {
    const std::vector<int64_t> shared = reusable(id);
    ScheduleSequence waiting = view(id);
    waiting.n_computed = std::ssize(shared) * config_.page_tokens;
    waiting.n_blocks = std::ssize(shared);
    waiting.n_sole_blocks = std::ranges::count_if(shared, [&](int64_t b) { return !holders_.contains(b); });
    return waiting;
  }

  std::set<int64_t> wanted_by_waiting() const {
    std::set<int64_t> wanted;
    for (const uint64_t id : waiting_)
      if (!paused_.contains(id))
        for (const int64_t block : reusable(id)) wanted.insert(block);
    return wanted;
  }

  void rank(std::vector<ScheduleSequence>& views) const {
    std::vector<ServiceRequest> requests;
    for (const ScheduleSequence& view : views)
      requests.push_back({view.id, view.service_class, view.tenant, view.n_tokens - view.n_computed});
    const std::vector<size_t> order = serving_order(requests, share_.tenants(), requests.size());
    for (size_t i = 0; i < order.size(); ++i) views[order[i]].rank = i;
  }

  std::vector<int64_t> reusable(uint64_t id) const {
    const Live& live = live_.at(id);
    std::vector<int64_t> blocks;
    if (live.job.prefix_group < 0) return blocks;
    const int64_t whole_pages = (live.job.n_prompt - 1) / config_.page_tokens;
    for (int64_t page = 0; page < whole_pages; ++page) {
      const auto found = cached_.find({live.job.prefix_group, page});
      if (found == cached_.end()) break;
      blocks.push_back(found->second);
    }
    return blocks;
  }

  std::string admit(uint64_t id) {
    if (!waiting_.contains(id)) return "admitted one that does not wait";
    if (in_arrival_order_ && id != *waiting_.begin()) return "admitted out of order";
    waiting_.erase(id);
    running_.insert(id);
    paused_.erase(id);
    return "";
  }

  // Takes references to the pages that hold the start of a waiting one; how many of them nobody held.
  int64_t share_prefix(uint64_t id) {
    if (!waiting_.contains(id) || paused_.contains(id)) return 0;
    Live& live = live_.at(id);
    live.blocks = reusable(id);
    int64_t n_idle = 0;
    for (int64_t block : live.blocks) n_idle += ++holders_[block] == 1 ? 1 : 0;
    n_shared_blocks += std::ssize(live.blocks);
    live.n_computed = std::ssize(live.blocks) * config_.page_tokens;
    return n_idle;
  }

  std::string advance(const PlannedSlice& slice) {
    if (!running_.contains(slice.id)) return "a slice of one that does not run";
    Live& live = live_.at(slice.id);
    for (int64_t i = 0; i < slice.new_blocks; ++i) {
      const int64_t block = take_block();
      if (block < 0) return "no block left";
      live.blocks.push_back(block);
      holders_[block] = 1;
    }
    if (slice.n_tokens < 1) return "an empty slice";
    live.n_computed += slice.n_tokens;
    share_.charge(live.job.tenant, slice.n_tokens);
    served_tokens[static_cast<size_t>(live.job.tenant)] += slice.n_tokens;
    if (live.n_computed > live.n_tokens) return "more tokens than there are";
    if (live.n_computed > std::ssize(live.blocks) * config_.page_tokens) return "a token without a page";
    return "";
  }

  int64_t take_block() {
    if (unused_.empty()) {
      const auto idle =
          std::ranges::find_if(cached_, [&](const auto& entry) { return !holders_.contains(entry.second); });
      if (idle == cached_.end()) return -1;
      unused_.insert(idle->second);
      cached_.erase(idle);
    }
    return unused_.extract(unused_.begin()).value();
  }

  // Whole pages of the shared prompt stay cached, everything else becomes unused.
  void give_back(uint64_t id) {
    Live& live = live_.at(id);
    for (int64_t page = 0; page < std::ssize(live.blocks); ++page) {
      const int64_t block = live.blocks[page];
      if (--holders_.at(block) > 0) continue;
      holders_.erase(block);
      if (std::ranges::any_of(cached_, [&](const auto& entry) { return entry.second == block; })) continue;
      const bool computed = (page + 1) * config_.page_tokens <= std::min(live.n_computed, live.job.n_prompt);
      if (live.job.prefix_group >= 0 && computed &&
          cached_.try_emplace({live.job.prefix_group, page}, block).second)
        continue;
      unused_.insert(block);
    }
    live.blocks.clear();
    live.n_computed = 0;
  }

  void finish_done(const StepPlan& plan) {
    for (const PlannedSlice& slice : plan.slices) {
      Live& live = live_.at(slice.id);
      if (live.n_computed < live.n_tokens) continue;
      ++live.n_tokens;  // sampled
      if (live.n_tokens < live.job.n_prompt + live.job.n_output) continue;
      give_back(slice.id);
      running_.erase(slice.id);
      share_.leave(live.job.tenant);
      live_.erase(slice.id);
      finished_.push_back(slice.id);
    }
  }

  ScheduleConfig config_;
  std::map<uint64_t, Live> live_;
  std::set<uint64_t> running_, waiting_;
  std::set<uint64_t> paused_;  // of the waiting ones, those that kept their pages
  FairShare share_;
  bool in_arrival_order_ = true;  // one tenant and class: nobody is overtaken
  std::vector<uint64_t> finished_;
  std::set<int64_t> unused_;
  std::map<int64_t, int64_t> holders_;   // block -> how many sequences hold it
  std::map<PrefixKey, int64_t> cached_;  // prefix page -> block
};

}  // namespace assay::test
