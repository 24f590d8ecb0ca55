// Keys to tenants. The table can be replaced while requests run: each sees the old one or the new one, whole.
// Ownership: shares its tenants. Thread safety: any thread. Cost: find() compares the key's digest with every
// digest in the table, whichever matches.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "tenants/tenant.h"
#include "tenants/tenant_policy.h"

namespace assay {

class TenantDirectory {
 public:
  static constexpr const char* kAnonymous = "default";  // who everyone is where no keys are asked for

  // Borrows the clock.
  explicit TenantDirectory(const TenantTable& table = {}, const Clock& clock = wall_clock());

  bool asks_for_keys() const;
  // Null: no tenant has this key. Where no keys are asked for: the anonymous tenant, whatever the key.
  std::shared_ptr<Tenant> find(std::string_view key) const;
  std::vector<std::shared_ptr<Tenant>> all() const;

  // Tenants of a name that was there keep their usage and what they owe; requests of the others run to their
  // end.
  void replace(const TenantTable& table);

 private:
  struct Row {
    KeyDigest digest;
    size_t tenant;
  };
  struct Snapshot {
    std::vector<std::shared_ptr<Tenant>> tenants;
    std::vector<Row> rows;
  };
  static const Clock& wall_clock();
  std::shared_ptr<const Snapshot> snapshot() const;
  std::shared_ptr<const Snapshot> make_snapshot(const TenantTable& table, const Snapshot& before) const;

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace assay
