#include "schedule/slot_shares.h"

#include <algorithm>

#include "base/check.h"

namespace assay::schedule_internal {

SlotShares::SlotShares(const ScheduleState& state, const ScheduleConfig& config)
    : tenants_(state.tenants), fairness_tokens_(static_cast<double>(config.fairness_tokens)) {
  const size_t n = std::max<size_t>(tenants_.size(), 1);
  held_.resize(n);
  shares_.resize(n, static_cast<double>(config.max_running));
  for (const ScheduleSequence& sequence : state.running) {
    CHECK(static_cast<size_t>(sequence.tenant) < n);
    ++held(sequence.tenant);
  }
  double total = 0;
  for (const ShareTenant& tenant : tenants_)
    if (tenant.n_live > 0) total += tenant.weight;
  for (size_t i = 0; i < tenants_.size(); ++i)
    if (total > 0) shares_[i] *= tenants_[i].weight / total;
}

bool SlotShares::gives_way(const ScheduleSequence& runner, const ScheduleSequence& comer, bool pages) const {
  if (comer.service_class != runner.service_class) return comer.service_class < runner.service_class;
  if (comer.tenant == runner.tenant || tenants_.empty()) return false;
  const ShareTenant& theirs = tenants_[static_cast<size_t>(comer.tenant)];
  const ShareTenant& own = tenants_[static_cast<size_t>(runner.tenant)];
  const double allowed = std::max(1.0, shares_[static_cast<size_t>(comer.tenant)]);
  const bool below = static_cast<double>(held(comer.tenant) + 1) <= allowed + 1e-9;
  // Taking pages costs their recomputation, and must not be answered in kind: a sequence is never served as
  // much in one go as the margin that its own length asks for.
  if (pages && runner.is_protected) return false;
  const double tokens = fairness_tokens_ + static_cast<double>(runner.n_tokens);
  const double margin = pages ? tokens / std::min(theirs.weight, own.weight) : 0;
  return is_above_share(runner.tenant) && below && theirs.service + margin <= own.service;
}

bool SlotShares::steps_aside(const ScheduleSequence& stream, const ScheduleSequence& prompt) const {
  if (prompt.service_class != stream.service_class) return prompt.service_class < stream.service_class;
  if (prompt.tenant == stream.tenant || tenants_.empty()) return false;
  const ShareTenant& theirs = tenants_[static_cast<size_t>(prompt.tenant)];
  const ShareTenant& own = tenants_[static_cast<size_t>(stream.tenant)];
  return is_above_share(stream.tenant) && theirs.service <= own.service;
}

}  // namespace assay::schedule_internal
