// Weighted fair sharing of computed tokens between tenants, and the order in which requests are served.
//
// Each tenant has a service counter: tokens computed for it divided by its weight. The tenant with the least
// service is served first (virtual token counter, Sheng et al. 2024, "Fairness in Serving Large Language
// Models"), so tenants that always want more get tokens in the ratio of their weights, whatever the lengths
// of their requests. A tenant that returns from idleness starts at the least service of those that are
// active, or level with all when none is: what it did not use is not saved up beyond a burst, and what
// another used alone is not its debt.
//
// Order of service: lower class first, then the tenant with less service, then arrival. The class is the
// priority; one that waited too long joins the most urgent class there is (service_class), so that no stream
// of urgent requests keeps it waiting for ever.
//
// Thread safety: plain values; one thread. Cost: O(1) per charge; serving_order is O(n log n).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay {

// The class of a request: its priority, or for an overdue one the most urgent among those that live.
constexpr int service_class(int priority, bool overdue, int most_urgent) {
  return overdue && most_urgent < priority ? most_urgent : priority;
}

struct ShareTenant {
  double weight = 1;   // > 0
  double service = 0;  // tokens computed / weight
  int64_t n_live = 0;  // requests that run or wait
};

class FairShare {
 public:
  // What a tenant that returns may be served before the others, at most, for what it did not use: so much of
  // a burst finds it as if it were alone.
  explicit FairShare(double burst_tokens = 0) : burst_tokens_(burst_tokens) {}

  int32_t add_tenant(double weight);  // its index
  void set_weight(int32_t tenant, double weight);
  // A request of the tenant arrives, or leaves for good.
  void enter(int32_t tenant);
  void leave(int32_t tenant);
  void charge(int32_t tenant, int64_t n_tokens);

  std::span<const ShareTenant> tenants() const { return tenants_; }

 private:
  const double burst_tokens_;
  std::vector<ShareTenant> tenants_;
};

struct ServiceRequest {
  uint64_t arrival = 0;  // distinct
  int service_class = 0;
  int32_t tenant = 0;
  int64_t n_tokens = 0;  // that serving it next would cost
};

// Indices into `requests`, the first `n` to be served. Every one that is chosen counts as served at once, so
// that a tenant's many requests do not come before another's first.
std::vector<size_t> serving_order(std::span<const ServiceRequest> requests,
                                  std::span<const ShareTenant> tenants, size_t n);

}  // namespace assay
