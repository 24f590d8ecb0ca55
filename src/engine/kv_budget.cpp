#include "engine/kv_budget.h"

#include <algorithm>

#include "base/units.h"

namespace assay {

Result<int64_t> kv_blocks_for(const KvDemand& demand) {
  const auto block_bytes = static_cast<uint64_t>(demand.layout.block_bytes());
  const int64_t per_sequence = ceil_div(demand.context_tokens, demand.layout.page_tokens);
  const int64_t wanted = per_sequence * demand.max_sequences;
  const bool given = demand.budget_bytes > 0;
  const uint64_t budget = given ? demand.budget_bytes : demand.available_bytes / 2;
  const auto held =
      static_cast<int64_t>(std::min<uint64_t>(budget / block_bytes, static_cast<uint64_t>(wanted)));
  if (held >= per_sequence) return held;
  return fail(ErrorCode::kResourceExhausted, "KV budget",
              "one sequence of {} tokens needs {} pages of {} tokens at {} each, {} in all; {} holds {}. Use "
              "a smaller "
              "context, a smaller KV format or more memory",
              demand.context_tokens, per_sequence, demand.layout.page_tokens, format_bytes(block_bytes),
              format_bytes(block_bytes * static_cast<uint64_t>(per_sequence)),
              given ? fmt::format("the budget of {}", format_bytes(budget))
                    : fmt::format("half of the available memory, {},", format_bytes(budget)),
              held);
}

}  // namespace assay
