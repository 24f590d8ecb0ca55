// Internal: who has to give way to whom (scheduler.h), as slots are taken and left during one plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/scheduler.h"

namespace assay::schedule_internal {

class SlotShares {
 public:
  SlotShares(const ScheduleState& state, const ScheduleConfig& config);

  void take(const ScheduleSequence& sequence) { ++held(sequence.tenant); }
  void leave(const ScheduleSequence& sequence) { --held(sequence.tenant); }

  // Whether `runner` has to let `comer` have its slot; with `pages`, also its pages.
  bool gives_way(const ScheduleSequence& runner, const ScheduleSequence& comer, bool pages) const;
  // Whether `stream` has to do without its token in a step that `prompt` needs for itself.
  bool steps_aside(const ScheduleSequence& stream, const ScheduleSequence& prompt) const;

 private:
  bool is_above_share(int32_t tenant) const {
    return static_cast<double>(held(tenant)) > shares_[static_cast<size_t>(tenant)];
  }
  int64_t& held(int32_t tenant) { return held_[static_cast<size_t>(tenant)]; }
  int64_t held(int32_t tenant) const { return held_[static_cast<size_t>(tenant)]; }

  std::span<const ShareTenant> tenants_;
  double fairness_tokens_;
  std::vector<double> shares_;  // of the slots, by tenant
  std::vector<int64_t> held_;   // running, by tenant
};

}  // namespace assay::schedule_internal
