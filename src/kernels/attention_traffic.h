// What attention moves, counted: bytes of queries, keys, values and outputs that cross from memory to a core
// with the tiling of the kernels, and how few any schedule could move. Thread safety: pure. Cost: one step for
// every block of queries.
//
// The bound. Let a head have P visible (query, key) pairs of d dimensions, and the near memory hold M values. In
// any phase that moves M values at most 2 M can be near, hence q rows of queries and k rows of keys with (q + k)
// d <= 2 M, which make at most q k <= (M / d)^2 products: P pairs need P d^2 / M^2 phases, M values each. So no
// schedule that keeps rows whole moves fewer than P d^2 / M values: the Theta(N^2 d^2 / M) of Dao et al. (2022,
// theorem 2 and proposition 3), whose optimality for M >= d^2 Saha and Ye (2024) prove without that condition,
// after the red-blue pebble game of Hong and Kung (1981). And everything is moved once.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace assay {

struct AttentionWork {
  AttentionShape shape;
  int n_queries = 0;       // the last ones of the context
  int64_t n_positions = 0;  // of the context, queries included
  Format key_format = Format::kF32;
  Format value_format = Format::kF32;
};

struct AttentionTraffic {
  double query_bytes = 0;
  double key_bytes = 0;  // codes and scales
  double value_bytes = 0;
  double output_bytes = 0;

  double total() const { return query_bytes + key_bytes + value_bytes + output_bytes; }
};

// Pairs of a query and a key that it sees, over all query heads.
double visible_pairs(const AttentionWork& work);

// With `queries_per_block` queries (and all heads that share a KV head) against each pass over keys and values.
AttentionTraffic attention_traffic(const AttentionWork& work, int queries_per_block);

// Queries that the CPU kernels take per pass.
int attention_queries_per_block(const AttentionShape& shape);

// Least bytes for near memory of `near_values` values: the larger of the bound above, its values as wide as the
// narrower of keys and values, and of moving everything once. near_values > 0.
double attention_io_bound(const AttentionWork& work, double near_values);

}  // namespace assay
