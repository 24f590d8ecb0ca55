#include "base/aligned.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace assay {
namespace {

TEST(AlignedBuffer, is_zeroed_and_aligned_at_every_size) {
  for (const size_t size : {1UL, 63UL, 64UL, 65UL, 4096UL, (2UL << 20) - 1, 2UL << 20, (6UL << 20) + 3}) {
    const auto buffer = AlignedBuffer::allocate(size);
    ASSERT_TRUE(buffer.has_value());
    EXPECT_EQ(buffer->size(), size);
    EXPECT_FALSE(buffer->empty());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % AlignedBuffer::kAlignment, 0U);
    EXPECT_TRUE(
        std::ranges::all_of(std::span(buffer->data(), size), [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST(AlignedBuffer, zero_bytes_are_an_empty_buffer) {
  const auto buffer = AlignedBuffer::allocate(0);
  ASSERT_TRUE(buffer.has_value());
  EXPECT_TRUE(buffer->empty());
  EXPECT_EQ(buffer->data(), nullptr);
}

TEST(AlignedBuffer, impossible_sizes_are_refused) {
  EXPECT_EQ(AlignedBuffer::allocate(SIZE_MAX).error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(AlignedBuffer::allocate(SIZE_MAX - 100).error().code, ErrorCode::kResourceExhausted);
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // their allocators stop the process instead
  EXPECT_EQ(AlignedBuffer::allocate(SIZE_MAX / 2).error().code, ErrorCode::kResourceExhausted);
#endif
}

TEST(AlignedBuffer, moves_hand_over_the_memory) {
  AlignedBuffer first = AlignedBuffer::allocate(100).value();
  first.as<uint32_t>()[3] = 0xdeadbeef;
  const std::byte* const address = first.data();
  AlignedBuffer second = std::move(first);
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): that it is empty is the claim
  EXPECT_EQ(second.data(), address);
  EXPECT_EQ(std::as_const(second).as<uint32_t>()[3], 0xdeadbeef);
  AlignedBuffer third = AlignedBuffer::allocate(7).value();
  third = std::move(second);
  EXPECT_EQ(third.data(), address);
  EXPECT_EQ(third.size(), 100U);
}

}  // namespace
}  // namespace assay
