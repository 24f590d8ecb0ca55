// What a sequence's return would cost that loses its pages: computing them again, or copying them out and in.
// Pure.
#pragma once

#include <cstdint>

namespace assay {

struct ReturnCost {
  double recompute_seconds = 0;
  double swap_seconds = 0;  // infinite where there is no room to swap to
  bool swaps() const { return swap_seconds < recompute_seconds; }
  double seconds() const { return swaps() ? swap_seconds : recompute_seconds; }
};

struct ReturnRates {
  double prompt_token_seconds = 0;   // to compute one token of a prompt
  double swap_bytes_per_second = 0;  // one way
  uint64_t block_bytes = 0;
  int64_t free_swap_blocks = 0;
};

// `n_computed` tokens in `n_blocks` pages.
ReturnCost return_cost(int64_t n_computed, int64_t n_blocks, const ReturnRates& rates);

}  // namespace assay
