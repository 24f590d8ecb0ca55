#include "engine/load_snapshot.h"

#include <algorithm>

namespace assay {

int32_t LoadSnapshot::index_of(const std::string& tenant) const {
  const auto found = std::ranges::find(tenants, tenant);
  return found == tenants.end() ? -1 : static_cast<int32_t>(found - tenants.begin());
}

void LoadSnapshot::count(const QueueRow& own) {
  const auto row = std::ranges::find_if(rows, [&](const QueueRow& candidate) {
    return candidate.tenant == own.tenant && candidate.service_class == own.service_class;
  });
  if (row == rows.end()) {
    rows.push_back(own);
    return;
  }
  row->n_running += own.n_running;
  row->n_waiting += own.n_waiting;
  row->prompt_tokens_left += own.prompt_tokens_left;
}

void LoadSnapshot::add(int64_t prompt_tokens, const RequestClass& share) {
  int32_t tenant = index_of(share.tenant);
  if (tenant < 0) {
    // It will start at the least service of those that are active.
    const auto least = std::ranges::min_element(tenant_service);
    tenant = static_cast<int32_t>(tenants.size());
    tenant_service.push_back(least == tenant_service.end() ? 0 : *least);
    tenants.push_back(share.tenant);
  }
  count({.tenant = tenant,
         .service_class = share.priority,
         .n_waiting = 1,
         .prompt_tokens_left = prompt_tokens});
}

double LoadSnapshot::expected_ttft_seconds(int64_t prompt_tokens, const RequestClass& share) const {
  const int32_t tenant = index_of(share.tenant);
  if (tenant >= 0)
    return expected_ttft(prompt_tokens, tenant, share.priority, rows, tenant_service, queue, times);
  std::vector<double> service = tenant_service;
  const auto least = std::ranges::min_element(service);
  service.push_back(least == service.end() ? 0 : *least);
  return expected_ttft(prompt_tokens, static_cast<int32_t>(tenants.size()), share.priority, rows, service,
                       queue, times);
}

}  // namespace assay
