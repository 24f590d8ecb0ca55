#include "tenants/tenant.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace assay {
namespace {

std::optional<RateState> state_of(const TokenBucket& bucket, double now) {
  if (!bucket.limited()) return std::nullopt;
  return RateState{bucket.per_minute(), std::max(0.0, bucket.available(now)), bucket.seconds_until_full(now)};
}

}  // namespace

Tenant::Tenant(TenantPolicy policy, const Clock& clock)
    : name_(policy.name),
      clock_(clock),
      policy_(std::move(policy)),
      requests_(policy_.requests_per_minute, clock.now_seconds()),
      tokens_(policy_.tokens_per_minute, clock.now_seconds()) {}

std::expected<Tenant::Admission, TenantRefusal> Tenant::admit(int64_t prompt_tokens) {
  using Limit = TenantRefusal::Limit;
  const std::scoped_lock lock(mutex_);
  const double now = clock_.now_seconds();
  const auto refuse = [&](Limit limit, double bound, double seconds) {
    ++usage_.refused_total;
    return std::unexpected(TenantRefusal{limit, bound, seconds});
  };
  if (policy_.in_flight_limit > 0 && usage_.in_flight >= policy_.in_flight_limit)
    return refuse(Limit::kInFlight, static_cast<double>(policy_.in_flight_limit), 1);
  if (const double wait = requests_.seconds_until(1, now); wait > 0)
    return refuse(Limit::kRequests, policy_.requests_per_minute, wait);
  if (const double wait = tokens_.seconds_until(static_cast<double>(prompt_tokens), now); wait > 0)
    return refuse(Limit::kTokens, policy_.tokens_per_minute, wait);
  requests_.take(1, now);
  tokens_.take(static_cast<double>(prompt_tokens), now);
  ++usage_.in_flight;
  ++usage_.requests_total;
  usage_.prompt_tokens_total += prompt_tokens;
  return Admission(shared_from_this(), prompt_tokens);
}

void Tenant::change_policy(TenantPolicy policy) {
  CHECK(policy.name == name_);
  const std::scoped_lock lock(mutex_);
  const double now = clock_.now_seconds();
  policy_ = std::move(policy);
  requests_.change_rate(policy_.requests_per_minute, now);
  tokens_.change_rate(policy_.tokens_per_minute, now);
}

TenantPolicy Tenant::policy() const {
  const std::scoped_lock lock(mutex_);
  return policy_;
}

TenantUsage Tenant::usage() const {
  const std::scoped_lock lock(mutex_);
  return usage_;
}

TenantRates Tenant::rates() const {
  const std::scoped_lock lock(mutex_);
  const double now = clock_.now_seconds();
  return {state_of(requests_, now), state_of(tokens_, now)};
}

Tenant::Admission::~Admission() {
  if (tenant_ == nullptr) return;  // moved from
  const std::scoped_lock lock(tenant_->mutex_);
  --tenant_->usage_.in_flight;
}

void Tenant::Admission::count_completion(int64_t tokens) {
  const std::scoped_lock lock(tenant_->mutex_);
  tenant_->tokens_.take(static_cast<double>(tokens), tenant_->clock_.now_seconds());
  tenant_->usage_.completion_tokens_total += tokens;
}

void Tenant::Admission::count_cached_prompt(int64_t tokens) {
  const std::scoped_lock lock(tenant_->mutex_);
  tenant_->usage_.cached_prompt_tokens_total += tokens;
}

void Tenant::Admission::withdraw() {
  if (std::exchange(withdrawn_, true)) return;
  const std::scoped_lock lock(tenant_->mutex_);
  const double now = tenant_->clock_.now_seconds();
  tenant_->requests_.give_back(1, now);
  tenant_->tokens_.give_back(static_cast<double>(prompt_tokens_), now);
  --tenant_->usage_.requests_total;
  tenant_->usage_.prompt_tokens_total -= prompt_tokens_;
}

}  // namespace assay
