#include "engine/tenant_ledger.h"

namespace assay {

int32_t TenantLedger::enter(const RequestClass& share) {
  const auto [entry, added] = by_name_.try_emplace(share.tenant, static_cast<int32_t>(totals_.size()));
  const int32_t tenant = entry->second;
  if (added) {
    share_.add_tenant(share.weight);
    totals_.push_back({.tenant = share.tenant});
  } else {
    share_.set_weight(tenant, share.weight);
  }
  share_.enter(tenant);
  return tenant;
}

}  // namespace assay
