// CpuBackend: the KV cache's operations, storing keys and values and attending to them.
#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "kernels/cpu_backend.h"

namespace assay {
namespace {

constexpr int64_t kQueryRowsPerBlock = 64;

}  // namespace

void CpuBackend::store_kv(const KvView& kv, const float* keys, const float* values, int64_t row_stride,
                          int n_rows, int first_position) {
  const int64_t width = int64_t{kv.n_kv_heads} * kv.head_dim;
  run(n_rows, values_cost(2 * n_rows * width), [&](int64_t r) {
    const int position = first_position + static_cast<int>(r);
    std::byte* block = kv.base + static_cast<size_t>(kv.blocks[position / kv.page_tokens]) * kv.block_bytes;
    for (const bool is_key : {true, false}) {
      const Format format = is_key ? kv.key_format : kv.value_format;
      std::byte* plane = block + (is_key ? kv.key_offset : kv.value_offset);
      auto* scales = reinterpret_cast<float*>(plane + width * kv.page_tokens);  // int8: one byte a value
      for (int h = 0; h < kv.n_kv_heads; ++h) {
        const int64_t slot = int64_t{h} * kv.page_tokens + position % kv.page_tokens;
        const float* x = (is_key ? keys : values) + r * row_stride + int64_t{h} * kv.head_dim;
        table_.store_head(format, x, kv.head_dim, plane + slot * kv.head_dim * bits(format) / 8,
                          format == Format::kInt8 ? scales + slot : nullptr);
      }
    }
  });
}

namespace {

void check_attention(const AttentionShape& shape, const AttentionTask& task) {
  CHECK(shape.n_kv_heads > 0 && shape.n_heads % shape.n_kv_heads == 0);
  CHECK(shape.head_dim > 0 && shape.head_dim <= kMaxHeadDim);
  CHECK_OP(task.kv.head_dim, ==, shape.head_dim);
  CHECK_OP(task.kv.n_kv_heads, ==, shape.n_kv_heads);
  CHECK(task.n_queries >= 0 && task.first_position >= 0 && task.kv.page_tokens > 0);
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

}  // namespace

// Few queries over long contexts: one item per task, KV head and split, then a merge. False when there is no
// gain or no room for the partials; attention() then computes the same bits without.
bool CpuBackend::attend_by_splits(const AttentionShape& shape, std::span<const AttentionTask> tasks) {
  const int64_t sharers = shape.n_heads / shape.n_kv_heads;
  int64_t items = 0, floats = 0, most_splits = 0, blocks = 0;
  for (const AttentionTask& task : tasks) {
    if (task.n_queries * sharers > kQueryRowsPerBlock) return false;
    const int64_t n = splits_of(shape, task).n;
    most_splits = std::max(most_splits, n);
    items += n * shape.n_kv_heads;
    blocks += shape.n_kv_heads;
    floats += n * shape.n_kv_heads * task.n_queries * sharers * partial_stride(shape.head_dim);
  }
  if (most_splits < 2 || pool_.size() == 1 || blocks >= 4 * pool_.size()) return false;
  if (static_cast<size_t>(floats) * sizeof(float) > partials_.size()) return false;

  // Finds item i: partials of a task lie [kv_head][split][rows].
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
  for (int64_t i = 0; i < blocks; ++i) {
    locate(i, false,
           [&](const AttentionTask& task, const AttentionBlock& block, SplitRange splits, int64_t,
               float* partials,
               int64_t stride) { table_.attention_merge(shape, task, block, partials, stride, splits.n); });
  }
  return true;
}

void CpuBackend::attention(const AttentionShape& shape, std::span<const AttentionTask> tasks) {
  for (const AttentionTask& task : tasks) check_attention(shape, task);
  if (attend_by_splits(shape, tasks)) return;
  const int sharers = shape.n_heads / shape.n_kv_heads;
  const auto queries_per_block = static_cast<int>(std::max<int64_t>(1, kQueryRowsPerBlock / sharers));
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
