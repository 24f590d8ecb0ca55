#include "schedule/return_cost.h"

#include <limits>

namespace assay {

ReturnCost return_cost(int64_t n_computed, int64_t n_blocks, const ReturnRates& rates) {
  ReturnCost cost;
  cost.recompute_seconds = static_cast<double>(n_computed) * rates.prompt_token_seconds;
  cost.swap_seconds = std::numeric_limits<double>::infinity();
  if (n_blocks <= rates.free_swap_blocks && rates.swap_bytes_per_second > 0) {
    const double bytes = static_cast<double>(n_blocks) * static_cast<double>(rates.block_bytes);
    cost.swap_seconds = 2 * bytes / rates.swap_bytes_per_second;
  }
  return cost;
}

}  // namespace assay
