#include "kvcache/kv_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kvcache/page_table.h"
#include "kvcache/property.h"

namespace assay {
namespace {

KvLayout small_layout(Format key = Format::kF32, Format value = Format::kF32) {
  return {.n_layers = 2,
          .n_kv_heads = 3,
          .head_dim = 8,
          .page_tokens = 4,
          .key_format = key,
          .value_format = value};
}

TEST(KvLayout, block_bytes_counts_codes_scales_and_padding) {
  // 4 tokens fill one tile of 16, 8 dimensions are padded to 16: 3 heads x 16 x 16 = 768 values a plane. int8
  // adds 16 f32 scales a head, int4 16 f16 scales and minimums for each 64 dimensions. Two layers.
  EXPECT_EQ(small_layout().block_bytes(), 2U * (3072 + 3072));
  EXPECT_EQ(small_layout(Format::kBF16, Format::kF16).block_bytes(), 2U * (1536 + 1536));
  EXPECT_EQ(small_layout(Format::kFp8E4M3, Format::kFp8E5M2).block_bytes(), 2U * (768 + 768));
  EXPECT_EQ(small_layout(Format::kInt8, Format::kF32).block_bytes(), 2U * (768 + 3 * 64 + 3072));
  EXPECT_EQ(small_layout(Format::kInt4, Format::kInt4).block_bytes(), 2U * 2 * (384 + 3 * 64));
  EXPECT_DOUBLE_EQ(small_layout().bytes_per_token(), 2.0 * (3072 + 3072) / 4);
}

// What a token costs at a usual shape: 64 dimensions, no padding.
TEST(KvLayout, bytes_per_token_are_codes_and_scales) {
  const auto bytes = [](Format format) {
    return KvLayout{.n_layers = 30,
                    .n_kv_heads = 3,
                    .head_dim = 64,
                    .page_tokens = 16,
                    .key_format = format,
                    .value_format = format}
        .bytes_per_token();
  };
  constexpr double kValues = 2 * 30 * 3 * 64, kHeads = 2 * 30 * 3;
  EXPECT_EQ(bytes(Format::kF32), 4 * kValues);
  EXPECT_EQ(bytes(Format::kBF16), 2 * kValues);
  EXPECT_EQ(bytes(Format::kFp8E4M3), kValues);
  EXPECT_EQ(bytes(Format::kInt8), kValues + 4 * kHeads);
  EXPECT_EQ(bytes(Format::kInt4), kValues / 2 + 4 * kHeads);
}

TEST(KvPool, create_refuses_what_cannot_be) {
  EXPECT_EQ(KvPool::create(small_layout(), 0).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(KvPool::create(small_layout(), -3).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(KvPool::create(small_layout(), int64_t{1} << 40).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(KvPool::create({}, 4).error().code, ErrorCode::kInvalidArgument);
}

TEST(KvPool, create_beyond_available_memory_says_the_sum) {
  KvLayout layout = small_layout();
  layout.n_layers = 1 << 16;
  layout.n_kv_heads = 1 << 10;
  const auto pool = KvPool::create(layout, 1 << 30);
  ASSERT_FALSE(pool.has_value());
  EXPECT_EQ(pool.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(pool.error().what.find("1073741824 pages of 4 tokens"), std::string::npos) << pool.error().what;
}

TEST(KvPool, create_whose_bytes_overflow_is_refused) {
  KvLayout layout = small_layout();
  layout.n_layers = layout.n_kv_heads = layout.head_dim = layout.page_tokens = 1 << 16;
  EXPECT_EQ(KvPool::create(layout, 1 << 30).error().code, ErrorCode::kInvalidArgument);
}

TEST(KvPool, allocate_gives_every_page_once_and_then_nothing) {
  auto pool = KvPool::create(small_layout(), 17);
  ASSERT_TRUE(pool.has_value()) << pool.error().message();
  std::set<int32_t> seen;
  for (int i = 0; i < 17; ++i) {
    const auto block = pool->allocate();
    ASSERT_TRUE(block.has_value());
    EXPECT_TRUE(*block >= 0 && *block < 17);
    EXPECT_TRUE(seen.insert(*block).second) << "page " << *block << " was handed out twice";
  }
  EXPECT_FALSE(pool->allocate().has_value());
  EXPECT_EQ(pool->n_free(), 0);
  for (const int32_t block : seen) pool->release(block);
  EXPECT_EQ(pool->n_free(), 17);
}

TEST(KvPool, retained_page_returns_after_the_last_release) {
  auto pool = KvPool::create(small_layout(), 1).value();
  const int32_t block = pool.allocate().value();
  pool.retain(block);
  pool.release(block);
  EXPECT_FALSE(pool.allocate().has_value());
  pool.release(block);
  EXPECT_EQ(pool.allocate(), block);
}

TEST(KvPoolDeathTest, broken_reference_counts_stop_the_process) {
  auto pool = KvPool::create(small_layout(), 2).value();
  const int32_t block = pool.allocate().value();
  pool.release(block);
  EXPECT_DEATH(pool.release(block), "counts");
  EXPECT_DEATH(pool.retain(block), "counts");
  EXPECT_DEATH(pool.release(7), "block");
}

TEST(KvPool, idle_counts_kept_pages_that_nobody_else_holds) {
  auto pool = KvPool::create(small_layout(), 3).value();
  const int32_t block = pool.allocate().value();
  EXPECT_EQ(pool.n_idle(), 0);
  pool.retain(block);
  pool.set_kept(block, true);
  EXPECT_EQ(pool.n_idle(), 0);
  EXPECT_EQ(pool.n_kept(), 1);
  pool.release(block);
  EXPECT_EQ(pool.n_idle(), 1);
  pool.retain(block);
  EXPECT_EQ(pool.n_idle(), 0);
  pool.release(block);
  pool.set_kept(block, false);
  EXPECT_EQ(pool.n_idle(), 0);
  EXPECT_EQ(pool.n_kept(), 0);
  pool.release(block);
  EXPECT_EQ(pool.n_free(), 3);
}

// Every plane of every layer of every page is its own: bytes written through one view are read back after all
// are.
TEST(KvPool, views_of_layers_and_pages_do_not_overlap) {
  for (const Format format : {Format::kF32, Format::kF16, Format::kBF16, Format::kFp8E4M3, Format::kInt8,
                              Format::kInt4}) {
    auto pool = KvPool::create(small_layout(format, Format::kInt8), 5).value();
    const KvLayout& layout = pool.layout();
    const std::vector<int32_t> blocks = {4, 1, 3, 0, 2};
    const auto plane = [&](Format plane_format) {
      return kv_plane_bytes(plane_format, layout.n_kv_heads, layout.page_tokens, layout.head_dim);
    };
    const auto for_each_plane = [&](auto&& visit) {
      unsigned char mark = 1;
      for (int layer = 0; layer < layout.n_layers; ++layer) {
        const KvView view = pool.view(layer, blocks);
        for (size_t page = 0; page < blocks.size(); ++page) {
          std::byte* block = view.base + static_cast<size_t>(view.blocks[page]) * view.block_bytes;
          visit(block + view.key_offset, plane(view.key_format), mark++);
          visit(block + view.value_offset, plane(view.value_format), mark++);
        }
      }
    };
    for_each_plane([](std::byte* at, size_t bytes, unsigned char mark) { std::memset(at, mark, bytes); });
    for_each_plane([](const std::byte* at, size_t bytes, unsigned char mark) {
      EXPECT_TRUE(std::all_of(at, at + bytes, [&](std::byte b) { return b == std::byte{mark}; }));
    });
  }
}

TEST(PageTable, grow_takes_all_pages_or_none) {
  auto pool = KvPool::create(small_layout(), 3).value();
  PageTable table(pool);
  EXPECT_TRUE(table.grow(0));
  EXPECT_TRUE(table.blocks().empty());
  EXPECT_EQ(table.pages_missing(5), 2);
  EXPECT_TRUE(table.grow(5));
  EXPECT_EQ(table.blocks().size(), 2U);
  EXPECT_EQ(table.n_positions(), 8);
  EXPECT_TRUE(table.grow(8));
  EXPECT_EQ(table.blocks().size(), 2U);
  EXPECT_FALSE(table.grow(13));
  EXPECT_EQ(table.blocks().size(), 2U);
  EXPECT_EQ(pool.n_free(), 1);
  PageTable moved = std::move(table);
  EXPECT_EQ(moved.blocks().size(), 2U);
  moved.shrink(4);
  EXPECT_EQ(moved.blocks().size(), 1U);
  EXPECT_EQ(pool.n_free(), 2);
  moved = PageTable(pool);
  EXPECT_EQ(pool.n_free(), 3);
}

// Random allocations, retains and releases against a map of counts.
TEST(KvPool, random_operations_agree_with_a_map_of_counts) {
  test::check_property(
      [](const std::vector<std::pair<uint8_t, uint8_t>>& operations) {
        constexpr int kBlocks = 7;
        auto pool = KvPool::create(small_layout(), kBlocks).value();
        std::map<int32_t, int> counts;
        for (const auto& [kind, pick] : operations) {
          if (kind % 3 == 0) {
            const auto block = pool.allocate();
            RC_ASSERT(block.has_value() == (counts.size() < kBlocks));
            if (block) RC_ASSERT(counts.emplace(*block, 1).second);
          } else if (!counts.empty()) {
            const auto held = std::next(counts.begin(), pick % static_cast<int>(counts.size()));
            if (kind % 3 == 1) {
              pool.retain(held->first);
              ++held->second;
            } else {
              pool.release(held->first);
              if (--held->second == 0) counts.erase(held);
            }
          }
          RC_ASSERT(pool.n_free() == kBlocks - static_cast<int64_t>(counts.size()));
          for (int32_t block = 0; block < kBlocks; ++block) {
            RC_ASSERT(pool.reference_count(block) == (counts.contains(block) ? counts[block] : 0));
          }
        }
      },
      300);
}

}  // namespace
}  // namespace assay
