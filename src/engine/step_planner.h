// From sequences and pages to what the scheduler sees, and its plan. Chooses which waiting sequences are
// looked at, in the order of service, and keeps those back whose prefix another one is computing right now:
// they will find its pages.
//
// Pages: candidates look up their prefix and hold references to what they found until the plan is applied
// (release_candidates()), so that what the scheduler counts is what the pool has.
// Ownership: borrows everything. Thread safety: the step thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/sequence.h"
#include "engine/tenant_ledger.h"
#include "kvcache/kv_pool.h"
#include "kvcache/prefix_index.h"
#include "schedule/return_cost.h"
#include "schedule/scheduler.h"
#include "schedule/step_time.h"

namespace assay {

using SequenceQueue = std::map<RequestId, std::unique_ptr<Sequence>>;  // in order of arrival

struct PlannerSettings {
  ScheduleConfig schedule;
  double itl_bound_seconds = 0;        // 0: automatic, see prompt_token_budget()
  double patience_seconds = 30;        // waits longer: overdue
  bool generated_pages_shared = true;  // both phases have one activation format
};

class StepPlanner {
 public:
  // `prefixes` may be null.
  StepPlanner(PlannerSettings settings, KvPool& pool, PrefixIndex* prefixes);

  StepPlan plan(SequenceQueue& running, SequenceQueue& waiting, const TenantLedger& ledger,
                const StepTimeModel& times, const ReturnRates& rates, double now);
  // Those that looked up a prefix but were not admitted hold nothing again.
  void release_candidates();

  // The leading tokens, at most n, whose pages may be found by others: a page holds what its tokens' phases
  // gave, and whoever reuses it takes them for prompt tokens.
  std::span<const int32_t> shareable_tokens(const Sequence& sequence, int64_t n) const;
  double itl_bound(const StepTimeModel& times, int64_t n_decodes) const;
  const ScheduleConfig& schedule() const { return settings_.schedule; }

 private:
  void classify(SequenceQueue& running, SequenceQueue& waiting, double now);
  void choose_candidates(SequenceQueue& waiting, const TenantLedger& ledger, size_t n);
  bool is_being_computed(const Sequence& sequence, const SequenceQueue& running) const;
  void look_up_prefix(Sequence& sequence);
  void forget_prefix(Sequence& sequence);
  ScheduleSequence view(const Sequence& sequence, const ReturnRates& rates) const;
  void rank(std::vector<ScheduleSequence>& views, const TenantLedger& ledger);

  const PlannerSettings settings_;
  KvPool& pool_;
  PrefixIndex* const prefixes_;
  std::vector<Sequence*> candidates_;  // waiting, in order of service; with references to what they found
  std::vector<int32_t> candidate_references_;  // [n_blocks], how many candidates hold a block
  std::vector<Sequence*> paused_;
  std::vector<ServiceRequest> requests_;
  std::vector<Sequence*> requested_;
  std::vector<ScheduleSequence> running_views_, waiting_views_;
};

}  // namespace assay
