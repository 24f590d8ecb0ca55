#include "tenants/tenant_directory.h"

#include <algorithm>
#include <utility>

namespace assay {

const Clock& TenantDirectory::wall_clock() {
  static const WallClock clock;
  return clock;
}

TenantDirectory::TenantDirectory(const TenantTable& table, const Clock& clock)
    : clock_(clock), snapshot_(make_snapshot(table, {})) {}

std::shared_ptr<const TenantDirectory::Snapshot> TenantDirectory::snapshot() const {
  const std::scoped_lock lock(mutex_);
  return snapshot_;
}

std::shared_ptr<const TenantDirectory::Snapshot> TenantDirectory::make_snapshot(
    const TenantTable& table, const Snapshot& before) const {
  auto made = std::make_shared<Snapshot>();
  const auto add = [&](const TenantPolicy& policy) {
    const auto known =
        std::ranges::find(before.tenants, policy.name, [](const auto& t) { return t->name(); });
    made->tenants.push_back(known != before.tenants.end() ? *known
                                                          : std::make_shared<Tenant>(policy, clock_));
    if (known != before.tenants.end()) (*known)->change_policy(policy);
  };
  if (table.empty()) add({.name = kAnonymous});
  for (const TenantEntry& entry : table) {
    for (const KeyDigest& digest : entry.keys) made->rows.push_back({digest, made->tenants.size()});
    add(entry.policy);
  }
  return made;
}

bool TenantDirectory::asks_for_keys() const {
  return !snapshot()->rows.empty();
}

std::shared_ptr<Tenant> TenantDirectory::find(std::string_view key) const {
  const auto now = snapshot();
  if (now->rows.empty()) return now->tenants.front();
  const KeyDigest digest = digest_of_key(key);
  size_t found = now->tenants.size();
  // To the end of the list: how long it takes must not say where a key stands.
  for (const Row& row : now->rows) found = same_digest(row.digest, digest) ? row.tenant : found;
  return found < now->tenants.size() ? now->tenants[found] : nullptr;
}

std::vector<std::shared_ptr<Tenant>> TenantDirectory::all() const {
  return snapshot()->tenants;
}

void TenantDirectory::replace(const TenantTable& table) {
  const std::scoped_lock lock(mutex_);
  snapshot_ = make_snapshot(table, *snapshot_);
}

}  // namespace assay
