// The tenants of an engine by name: their share (schedule/fair_share.h) and what they have and hold.
// Tenants are never forgotten, so their names must come from configuration, not from requests.
// Thread safety: one thread (the step loop).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/engine_stats.h"
#include "engine/request_class.h"
#include "schedule/fair_share.h"

namespace assay {

class TenantLedger {
 public:
  // The tenant's index. A request of it lives from enter() to leave().
  int32_t enter(const RequestClass& share);
  void leave(int32_t tenant) { share_.leave(tenant); }

  void count_prompt(int32_t tenant, int64_t n_tokens) { at(tenant).prompt_tokens_total += n_tokens; }
  void count_generated(int32_t tenant) { ++at(tenant).generated_tokens_total; }
  // Tokens were computed for it, prompt or not.
  void charge(int32_t tenant, int64_t n_tokens) { share_.charge(tenant, n_tokens); }

  std::span<const ShareTenant> shares() const { return share_.tenants(); }
  // By index; running, waiting and kv_blocks are left 0.
  const std::vector<TenantStats>& totals() const { return totals_; }

 private:
  TenantStats& at(int32_t tenant) { return totals_[static_cast<size_t>(tenant)]; }

  static constexpr double kBurstTokens = 1024;

  FairShare share_{kBurstTokens};
  std::map<std::string, int32_t> by_name_;
  std::vector<TenantStats> totals_;
};

}  // namespace assay
