#include "kvcache/swap_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.h"

namespace assay {
namespace {

constexpr KvLayout kLayout{.n_layers = 2, .n_kv_heads = 1, .head_dim = 16, .page_tokens = 16};

TEST(SwapSpace, blocks_come_back_bit_for_bit_into_other_blocks) {
  auto pool = KvPool::create(kLayout, 12);
  ASSERT_TRUE(pool.has_value());
  auto swap = SwapSpace::create(kLayout, 5 * kLayout.block_bytes() + 1);
  ASSERT_TRUE(swap.has_value());
  EXPECT_EQ(swap->n_slots(), 5);
  Random random(5, "swap");
  for (int round = 0; round < 50; ++round) {
    std::vector<int32_t> blocks, targets;
    std::vector<std::vector<std::byte>> contents;
    for (int64_t i = random.between(0, 5); i > 0; --i) {
      blocks.push_back(*pool->allocate());
      const std::span<std::byte> memory = pool->block_memory(blocks.back());
      for (std::byte& byte : memory) byte = static_cast<std::byte>(random.below(256));
      contents.emplace_back(memory.begin(), memory.end());
    }
    const auto slots = swap->store(*pool, blocks);
    ASSERT_TRUE(slots.has_value());
    EXPECT_EQ(swap->n_free(), 5 - std::ssize(blocks));
    for (const int32_t block : blocks) {
      std::ranges::fill(pool->block_memory(block), std::byte{0xEE});
      pool->release(block);
    }
    for (size_t i = 0; i <= blocks.size(); ++i) targets.push_back(*pool->allocate());
    std::ranges::reverse(targets);
    swap->load(*slots, *pool, targets);
    EXPECT_EQ(swap->n_free(), 5);
    for (size_t i = 0; i < contents.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(pool->block_memory(targets[i]), contents[i]));
    for (const int32_t block : targets) pool->release(block);
  }
}

TEST(SwapSpace, too_many_blocks_are_refused_and_nothing_changes) {
  auto pool = KvPool::create(kLayout, 4);
  ASSERT_TRUE(pool.has_value());
  auto swap = SwapSpace::create(kLayout, 2 * kLayout.block_bytes());
  ASSERT_TRUE(swap.has_value());
  std::vector<int32_t> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(*pool->allocate());
  EXPECT_FALSE(swap->store(*pool, blocks).has_value());
  EXPECT_EQ(swap->n_free(), 2);
  const auto slots = swap->store(*pool, std::span(blocks).first(2));
  ASSERT_TRUE(slots.has_value());
  EXPECT_FALSE(swap->store(*pool, std::span(blocks).last(1)).has_value());
  swap->drop(*slots);
  EXPECT_EQ(swap->n_free(), 2);
}

TEST(SwapSpace, more_than_the_machine_has_is_refused) {
  EXPECT_EQ(SwapSpace().n_slots(), 0);
  const auto swap = SwapSpace::create(kLayout, uint64_t{1} << 50);
  ASSERT_FALSE(swap.has_value());
  EXPECT_EQ(swap.error().code, ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace assay
