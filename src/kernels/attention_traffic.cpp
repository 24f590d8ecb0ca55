#include "kernels/attention_traffic.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/kernel_table.h"

namespace assay {
namespace {

// Positions that queries at positions first .. last see.
int64_t seen_by(const AttentionShape& shape, int64_t first, int64_t last) {
  const int64_t oldest = shape.window > 0 ? std::max<int64_t>(0, first - shape.window + 1) : 0;
  return last + 1 - oldest;
}

double bytes_per_position(const AttentionShape& shape, Format format) {
  return static_cast<double>(kv_tile_bytes(format, shape.head_dim)) / kKvTile * shape.n_kv_heads;
}

}  // namespace

double visible_pairs(const AttentionWork& work) {
  double pairs = 0;
  for (int64_t p = work.n_positions - work.n_queries; p < work.n_positions; ++p)
    pairs += static_cast<double>(seen_by(work.shape, p, p));
  return pairs * work.shape.n_heads;
}

AttentionTraffic attention_traffic(const AttentionWork& work, int queries_per_block) {
  CHECK(queries_per_block > 0 && work.n_queries >= 0 && work.n_positions >= work.n_queries);
  const int64_t first = work.n_positions - work.n_queries;
  double positions = 0;
  for (int64_t q = 0; q < work.n_queries; q += queries_per_block) {
    const int64_t last = std::min<int64_t>(q + queries_per_block, work.n_queries) - 1;
    positions += static_cast<double>(seen_by(work.shape, first + q, first + last));
  }
  const double rows = 4.0 * work.n_queries * work.shape.n_heads * work.shape.head_dim;
  return {.query_bytes = rows,
          .key_bytes = positions * bytes_per_position(work.shape, work.key_format),
          .value_bytes = positions * bytes_per_position(work.shape, work.value_format),
          .output_bytes = rows};
}

int attention_queries_per_block(const AttentionShape& shape) {
  return std::max(1, kAttentionRowsPerBlock / (shape.n_heads / shape.n_kv_heads));
}

double attention_io_bound(const AttentionWork& work, double near_values) {
  CHECK(near_values > 0);
  if (work.n_queries == 0) return 0;
  const AttentionTraffic once = attention_traffic(work, work.n_queries);
  const double width = std::min(kv_bits(work.key_format), kv_bits(work.value_format)) / 8.0;
  const double dim = work.shape.head_dim;
  return std::max(once.total(), visible_pairs(work) * dim * dim / near_values * width);
}

}  // namespace assay
