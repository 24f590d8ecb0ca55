#include "schedule/fair_share.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace assay {

int32_t FairShare::add_tenant(double weight) {
  CHECK(weight > 0);
  tenants_.push_back({.weight = weight});
  return static_cast<int32_t>(tenants_.size() - 1);
}

void FairShare::set_weight(int32_t tenant, double weight) {
  CHECK(weight > 0);
  ShareTenant& own = tenants_[static_cast<size_t>(tenant)];
  if (own.weight == weight) return;
  own.weight = weight;  // the counter is in units of virtual time: what was served before stays comparable
}

void FairShare::enter(int32_t tenant) {
  ShareTenant& own = tenants_[static_cast<size_t>(tenant)];
  if (own.n_live++ > 0) return;
  double least = std::numeric_limits<double>::infinity();
  for (const ShareTenant& other : tenants_)
    if (&other != &own && other.n_live > 0) least = std::min(least, other.service);
  if (least < std::numeric_limits<double>::infinity()) {
    least -= burst_tokens_ / own.weight;
  } else {  // nobody is active: what was used alone is nobody's debt, all start level
    least = std::ranges::max(tenants_, {}, &ShareTenant::service).service;
  }
  own.service = std::max(own.service, least);
}

void FairShare::leave(int32_t tenant) {
  ShareTenant& own = tenants_[static_cast<size_t>(tenant)];
  CHECK_OP(own.n_live, >, 0);
  --own.n_live;
}

void FairShare::charge(int32_t tenant, int64_t n_tokens) {
  ShareTenant& own = tenants_[static_cast<size_t>(tenant)];
  own.service += static_cast<double>(n_tokens) / own.weight;
}

std::vector<size_t> serving_order(std::span<const ServiceRequest> requests,
                                  std::span<const ShareTenant> tenants, size_t n) {
  // By class, tenant and arrival; then the tenants of a class take turns by service.
  std::vector<size_t> sorted;
  for (size_t i = 0; i < requests.size(); ++i) sorted.push_back(i);
  std::ranges::sort(sorted, [&](size_t a, size_t b) {
    const ServiceRequest &x = requests[a], &y = requests[b];
    if (x.service_class != y.service_class) return x.service_class < y.service_class;
    if (x.tenant != y.tenant) return x.tenant < y.tenant;
    return x.arrival < y.arrival;
  });
  struct Lane {
    size_t next, end;
  };
  std::vector<double> service;
  for (const ShareTenant& tenant : tenants) service.push_back(tenant.service);
  const auto service_of = [&](size_t request) -> double& {
    return service[static_cast<size_t>(requests[request].tenant)];
  };
  std::vector<size_t> order;
  std::vector<Lane> lanes;
  for (size_t begin = 0; begin < sorted.size() && order.size() < n;) {
    const int service_class = requests[sorted[begin]].service_class;
    lanes.clear();
    size_t end = begin;
    for (; end < sorted.size() && requests[sorted[end]].service_class == service_class; ++end) {
      if (lanes.empty() || requests[sorted[end]].tenant != requests[sorted[end - 1]].tenant)
        lanes.push_back({end, end});
      lanes.back().end = end + 1;
    }
    while (!lanes.empty() && order.size() < n) {
      const auto best = std::ranges::min_element(lanes, [&](const Lane& a, const Lane& b) {
        const double x = service_of(sorted[a.next]), y = service_of(sorted[b.next]);
        if (x != y) return x < y;
        return requests[sorted[a.next]].arrival < requests[sorted[b.next]].arrival;
      });
      const ServiceRequest& chosen = requests[sorted[best->next]];
      service_of(sorted[best->next]) +=
          static_cast<double>(chosen.n_tokens) / tenants[static_cast<size_t>(chosen.tenant)].weight;
      order.push_back(sorted[best->next]);
      if (++best->next == best->end) lanes.erase(best);
    }
    begin = end;
  }
  return order;
}

}  // namespace assay
