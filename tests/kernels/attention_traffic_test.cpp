// Counted traffic against hand counts, and what must hold between it and the bound.
#include "kernels/attention_traffic.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace assay {
namespace {

AttentionWork work_of(int n_queries, int64_t n_positions, Format format = Format::kF32, int window = 0) {
  return {.shape = {.n_heads = 6, .n_kv_heads = 2, .head_dim = 64, .scale = 1, .window = window},
          .n_queries = n_queries,
          .n_positions = n_positions,
          .key_format = format,
          .value_format = format};
}

TEST(AttentionTraffic, decode_reads_everything_once) {
  const AttentionTraffic f32 = attention_traffic(work_of(1, 1000), 1);
  EXPECT_EQ(f32.key_bytes, 1000.0 * 2 * 64 * 4);
  EXPECT_EQ(f32.value_bytes, f32.key_bytes);
  EXPECT_EQ(f32.query_bytes, 6.0 * 64 * 4);
  EXPECT_EQ(f32.output_bytes, f32.query_bytes);
  EXPECT_EQ(attention_traffic(work_of(1, 1000, Format::kInt8), 1).key_bytes, 1000.0 * 2 * (64 + 4));
  EXPECT_EQ(attention_traffic(work_of(1, 1000, Format::kInt4), 1).key_bytes, 1000.0 * 2 * (32 + 4));
  EXPECT_EQ(attention_traffic(work_of(1, 1000, Format::kInt4, 100), 1).key_bytes, 100.0 * 2 * (32 + 4));
}

// Blocks of 4 of 10 queries from position 0: they end at positions 4, 8 and 10.
TEST(AttentionTraffic, prefill_reads_keys_once_per_block) {
  const AttentionTraffic traffic = attention_traffic(work_of(10, 10), 4);
  EXPECT_EQ(traffic.key_bytes, (4.0 + 8 + 10) * 2 * 64 * 4);
  EXPECT_EQ(traffic.query_bytes, 10.0 * 6 * 64 * 4);
  // A window of 3: the second block sees positions 2 .. 7, the third 6 .. 9.
  EXPECT_EQ(attention_traffic(work_of(10, 10, Format::kF32, 3), 4).key_bytes, (4.0 + 6 + 4) * 2 * 64 * 4);
}

TEST(AttentionTraffic, visible_pairs_are_counted) {
  EXPECT_EQ(visible_pairs(work_of(10, 10)), 6.0 * 55);
  EXPECT_EQ(visible_pairs(work_of(2, 10)), 6.0 * (9 + 10));
  EXPECT_EQ(visible_pairs(work_of(10, 10, Format::kF32, 3)), 6.0 * (1 + 2 + 8 * 3));
}

TEST(AttentionIoBound, is_below_the_traffic_of_any_tile_that_fits) {
  Random random(1, "traffic");
  for (int round = 0; round < 200; ++round) {
    const int n = static_cast<int>(random.between(1, 3000));
    const AttentionWork work = work_of(n, n + random.between(0, 3000));
    const int queries = static_cast<int>(random.between(1, 300));
    // The block's queries and outputs (3 heads of 64 values each), and one key and value.
    const double near = queries * 3.0 * 2 * 64 + 2 * 64;
    EXPECT_LE(attention_io_bound(work, near), attention_traffic(work, queries).total());
  }
}

TEST(AttentionIoBound, falls_with_near_memory_to_moving_everything_once) {
  const AttentionWork work = work_of(4096, 4096);
  const double pairs = 6.0 * 4096 * 4097 / 2;
  EXPECT_DOUBLE_EQ(attention_io_bound(work, 4096), pairs * 64 * 64 / 4096 * 4);
  EXPECT_DOUBLE_EQ(attention_io_bound(work, 8192), attention_io_bound(work, 4096) / 2);
  EXPECT_EQ(attention_io_bound(work, 1e12), attention_traffic(work, 4096).total());
  EXPECT_EQ(attention_io_bound(work_of(0, 10), 100), 0);
}

}  // namespace
}  // namespace assay
