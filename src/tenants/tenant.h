// One tenant at run time: its limits, what it has in flight and what it has used.
//
// admit() takes a request in or says why not and for how long; the Admission that it returns counts until it
// is destroyed. A prompt is charged at admission, tokens of the answer as they come, so a limit in tokens can
// be exceeded by the answers that are being written and is made up for afterwards. Ownership: shared; an
// Admission keeps its tenant. Thread safety: any thread. Cost: a short lock.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "tenants/tenant_policy.h"
#include "tenants/token_bucket.h"

namespace assay {

struct TenantUsage {
  int64_t in_flight = 0;
  int64_t requests_total = 0;  // admitted
  int64_t refused_total = 0;   // by the tenant's own limits
  int64_t prompt_tokens_total = 0;
  int64_t cached_prompt_tokens_total = 0;  // of these, taken from the prefix cache
  int64_t completion_tokens_total = 0;
};

// One limit as it stands.
struct RateState {
  double limit = 0;  // per minute
  double remaining = 0;
  double reset_seconds = 0;  // until all of it is there again
};

struct TenantRates {
  std::optional<RateState> requests;
  std::optional<RateState> tokens;
};

struct TenantRefusal {
  enum class Limit { kInFlight, kRequests, kTokens, kCount };
  Limit limit = Limit::kInFlight;
  double bound = 0;
  double retry_seconds = 1;
};

class Tenant : public std::enable_shared_from_this<Tenant> {
 public:
  // One request that was let in. Movable; destroying it ends it.
  class Admission {
   public:
    Admission(Admission&& other) noexcept = default;
    Admission& operator=(Admission&&) = delete;
    ~Admission();

    const Tenant& tenant() const { return *tenant_; }
    void count_completion(int64_t tokens);     // tokens of the answer, as they come
    void count_cached_prompt(int64_t tokens);  // for the usage; limits count the whole prompt
    void withdraw();                           // it never ran: everything is given back

   private:
    friend class Tenant;
    Admission(std::shared_ptr<Tenant> tenant, int64_t prompt_tokens)
        : tenant_(std::move(tenant)), prompt_tokens_(prompt_tokens) {}
    std::shared_ptr<Tenant> tenant_;
    int64_t prompt_tokens_;
    bool withdrawn_ = false;
  };

  // Borrows the clock.
  Tenant(TenantPolicy policy, const Clock& clock);

  std::expected<Admission, TenantRefusal> admit(int64_t prompt_tokens);
  void change_policy(TenantPolicy policy);  // of the same name; what is in flight goes on

  const std::string& name() const { return name_; }
  TenantPolicy policy() const;
  TenantUsage usage() const;
  TenantRates rates() const;

 private:
  const std::string name_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  TenantPolicy policy_;
  TokenBucket requests_;
  TokenBucket tokens_;
  TenantUsage usage_;
};

}  // namespace assay
