// Who may use a server, with which keys, and how much of it. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tenants/key_digest.h"

namespace assay {

struct TenantPolicy {
  std::string name;             // 1 to 64 of A-Za-z0-9._-
  double weight = 1;            // share of tokens relative to the other tenants'; > 0
  int priority = 0;             // lower is served first, -100 to 100; requests may only ask for less urgency
  int64_t in_flight_limit = 0;  // requests at one time; 0: no limit
  double requests_per_minute = 0;  // 0: no limit
  double tokens_per_minute = 0;    // prompt and answer; 0: no limit
  // Time to first token. refuse_late: a request that cannot keep it is refused; otherwise it waits.
  std::optional<double> ttft_bound_seconds;
  bool refuse_late = true;
  bool admin = false;  // may see what other tenants used
};

struct TenantEntry {
  TenantPolicy policy;
  std::vector<KeyDigest> keys;
};

// Names and keys are unique. Empty: no keys are asked for.
using TenantTable = std::vector<TenantEntry>;

}  // namespace assay
