// How a request competes with others: whose it is, how urgent, and by when it must have begun. Plain values.
#pragma once

#include <optional>
#include <string>

namespace assay {

struct RequestClass {
  std::string tenant;  // whose tokens it counts as; prefix pages are shared within a tenant only
  double weight = 1;   // the tenant's share of tokens relative to the other tenants'; > 0, the latest counts
  int priority = 0;    // lower is served first, as in vLLM; -100 to 100
  // submit() refuses what cannot have its first token within this time (kUnavailable, where "deadline").
  std::optional<double> ttft_bound_seconds;
};

}  // namespace assay
