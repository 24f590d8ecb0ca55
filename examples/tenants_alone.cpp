// Two tenants, one of them with a limit, and what they are told. Links assay_tenants alone.
#include <cstdio>

#include "tenants/tenant_directory.h"
#include "tenants/tenant_file.h"

int main() {
  const auto table = assay::parse_tenants(R"(
[[tenant]]
name = "search"
keys = ["sk-search-1"]
weight = 3

[[tenant]]
name = "batch"
keys = ["sk-batch-1"]
tokens_per_minute = 100
)",
                                          "example");
  if (!table) return std::puts(table.error().message().c_str()), 1;
  assay::TenantDirectory directory(*table);
  const auto batch = directory.find("sk-batch-1");
  if (batch == nullptr || directory.find("sk-batch-2") != nullptr) return 1;
  for (int i = 0; i < 3; ++i) {
    const auto admitted = batch->admit(60);
    if (admitted) {
      std::printf("%s: admitted\n", batch->name().c_str());
    } else {
      std::printf("%s: try again in %.1f s\n", batch->name().c_str(), admitted.error().retry_seconds);
    }
  }
}
