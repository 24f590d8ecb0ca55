// CpuBackend: the KV cache's operations, storing keys and values and attending to them.
#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "kernels/cpu_backend.h"

namespace assay {
void CpuBackend::store_kv(const KvView& kv, const float* keys, const float* values, int64_t row_stride,
                          int n_rows, int first_position) {
  CHECK(kv.page_tokens > 0 && kv.page_tokens % kKvTile == 0);
  CHECK(kv.head_dim > 0 && kv.head_dim <= kMaxHeadDim && first_position >= 0);
  if (n_rows <= 0) return;
  // One item is what falls into one tile: tiles have one writer.
  const int first_tile = first_position / kKvTile;
  const int n_tiles = (first_position + n_rows - 1) / kKvTile - first_tile + 1;
  const int64_t width = int64_t{kv.n_kv_heads} * kv.head_dim;
  run(n_tiles, values_cost(8 * n_rows * width), [&](int64_t i) {
    const int tile_start = (first_tile + static_cast<int>(i)) * kKvTile;
    const int first = std::max(tile_start, first_position);
    const int end = std::min(tile_start + kKvTile, first_position + n_rows);
    const int64_t at = int64_t{first - first_position} * row_stride;
    table_.store_kv(kv, keys + at, values + at, row_stride, end - first, first);
  });
}

namespace {

void check_attention(const AttentionShape& shape, const AttentionTask& task) {
  CHECK(shape.n_kv_heads > 0 && shape.n_heads % shape.n_kv_heads == 0);
  CHECK(shape.head_dim > 0 && shape.head_dim <= kMaxHeadDim);
  CHECK_OP(task.kv.head_dim, ==, shape.head_dim);
  CHECK_OP(task.kv.n_kv_heads, ==, shape.n_kv_heads);
  CHECK(task.n_queries >= 0 && task.first_position >= 0);
  CHECK(task.kv.page_tokens > 0 && task.kv.page_tokens % kKvTile == 0);
}

// First split that any query of the task sees, and how many follow.
struct SplitRange {
  int first = 0, n = 0;
};
SplitRange splits_of(const AttentionShape& shape, const AttentionTask& task) {
  if (task.n_queries == 0) return {};
  const int first = task.first_position;
  const int oldest = shape.window > 0 ? std::max(0, first - shape.window + 1) : 0;
  const int newest = first + task.n_queries - 1;
  return {oldest / kKeySplit, newest / kKeySplit - oldest / kKeySplit + 1};
}

int64_t partial_floats(const AttentionShape& shape, const AttentionTask& task) {
  return int64_t{splits_of(shape, task).n} * task.n_queries * shape.n_heads * partial_stride(shape.head_dim);
}

// Whether cutting tasks into splits pays: without, one thread takes all splits of a KV head, and the longest
// would keep the others waiting.
bool gains_by_splits(const AttentionShape& shape, std::span<const AttentionTask> tasks, int n_threads) {
  int64_t most = 0, all = 0;
  for (const AttentionTask& task : tasks) {
    if (task.n_queries * (shape.n_heads / shape.n_kv_heads) > kAttentionRowsPerBlock) return false;
    const int64_t n = splits_of(shape, task).n;
    most = std::max(most, n);
    all += n * shape.n_kv_heads;
  }
  return n_threads > 1 && most > 1 && 4 * most * n_threads > all;
}

}  // namespace

// Few queries over long contexts: one item per task, KV head and split, then a merge. The partials of all tasks
// lie one after the other: [kv_head][split][rows].
void CpuBackend::attend_by_splits(const AttentionShape& shape, std::span<const AttentionTask> tasks) {
  const int64_t sharers = shape.n_heads / shape.n_kv_heads;
  int64_t items = 0, heads = 0;
  for (const AttentionTask& task : tasks) {
    items += int64_t{splits_of(shape, task).n} * shape.n_kv_heads;
    heads += splits_of(shape, task).n > 0 ? shape.n_kv_heads : 0;
  }
  // Finds item i.
  const auto locate = [&](int64_t i, bool by_split, auto&& visit) {
    float* partials = partials_.as<float>();
    for (const AttentionTask& task : tasks) {
      const SplitRange splits = splits_of(shape, task);
      const int64_t per_head = by_split ? splits.n : (splits.n > 0 ? 1 : 0);
      const int64_t stride = task.n_queries * sharers * partial_stride(shape.head_dim);
      if (i < per_head * shape.n_kv_heads) {
        const int64_t head = i / per_head, split = i % per_head;
        visit(task, AttentionBlock{static_cast<int>(head), 0, task.n_queries}, splits, split,
              partials + (head * splits.n + split) * stride, stride);
        return;
      }
      i -= per_head * shape.n_kv_heads;
      partials += splits.n * shape.n_kv_heads * stride;
    }
  };
  pool_.parallel_for(items, [&](int64_t i) {
    locate(i, true,
           [&](const AttentionTask& task, const AttentionBlock& block, SplitRange splits, int64_t split,
               float* partials, int64_t) {
             table_.attention_split(shape, task, block, splits.first + static_cast<int>(split), partials);
           });
  });
  run(heads, values_cost(2 * items * sharers * shape.head_dim), [&](int64_t i) {
    locate(i, false,
           [&](const AttentionTask& task, const AttentionBlock& block, SplitRange splits, int64_t,
               float* partials,
               int64_t stride) { table_.attention_merge(shape, task, block, partials, stride, splits.n); });
  });
}

void CpuBackend::attention(const AttentionShape& shape, std::span<const AttentionTask> tasks) {
  for (const AttentionTask& task : tasks) check_attention(shape, task);
  if (!gains_by_splits(shape, tasks, pool_.size())) return attend_whole(shape, tasks);
  // As many tasks at once as the partials have room for; one that has no room is computed whole, to the same
  // bits.
  const auto room = static_cast<int64_t>(partials_.size() / sizeof(float));
  while (!tasks.empty()) {
    size_t n = 0;
    for (int64_t floats = 0; n < tasks.size(); ++n) {
      floats += partial_floats(shape, tasks[n]);
      if (floats > room) break;
    }
    if (n > 0) {
      attend_by_splits(shape, tasks.first(n));
    } else {
      attend_whole(shape, tasks.first(n = 1));
    }
    tasks = tasks.subspan(n);
  }
}

// One item per KV head and block of queries.
void CpuBackend::attend_whole(const AttentionShape& shape, std::span<const AttentionTask> tasks) {
  const int sharers = shape.n_heads / shape.n_kv_heads;
  const int queries_per_block = std::max(1, kAttentionRowsPerBlock / sharers);
  int64_t n = 0, products = 0;
  for (const AttentionTask& task : tasks) {
    n += ceil_div(task.n_queries, queries_per_block) * shape.n_kv_heads;
    products +=
        int64_t{2} * task.n_queries * (task.first_position + task.n_queries) * shape.n_heads * shape.head_dim;
  }
  run(n, products_cost(4 * products), [&](int64_t i) {
    for (const AttentionTask& task : tasks) {
      const int64_t query_blocks = ceil_div(task.n_queries, queries_per_block);
      if (i < query_blocks * shape.n_kv_heads) {
        // The last queries see the most keys: they go first, so that no thread is left with them at the end.
        const auto block = static_cast<int>(query_blocks - 1 - i / shape.n_kv_heads);
        const int first = block * queries_per_block;
        table_.attention(shape, task,
                         {.kv_head = static_cast<int>(i % shape.n_kv_heads),
                          .first_query = first,
                          .n_queries = std::min(queries_per_block, task.n_queries - first)});
        return;
      }
      i -= query_blocks * shape.n_kv_heads;
    }
  });
}

}  // namespace assay
