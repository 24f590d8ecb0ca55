// How many pages the engine gets. Pure.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "kvcache/kv_pool.h"

namespace assay {

struct KvDemand {
  KvLayout layout;
  int64_t max_sequences = 0;
  int64_t context_tokens = 0;
  uint64_t budget_bytes = 0;     // 0: see below
  uint64_t available_bytes = 0;  // memory that could be had now
};

// Without a budget: enough for every sequence at the full context, at most half of the available memory. With
// one: as many whole pages as it holds, at most what every sequence together can use. kResourceExhausted,
// with the sum, when not even one sequence at the full context fits.
Result<int64_t> kv_blocks_for(const KvDemand& demand);

}  // namespace assay
