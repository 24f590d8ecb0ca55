#include "kvcache/swap_space.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/memory.h"
#include "base/units.h"

namespace assay {

Result<SwapSpace> SwapSpace::create(const KvLayout& layout, uint64_t bytes) {
  SwapSpace space;
  space.block_bytes_ = layout.block_bytes();
  space.n_slots_ = static_cast<int64_t>(
      std::min<uint64_t>(bytes / space.block_bytes_, std::numeric_limits<int32_t>::max()));
  if (space.n_slots_ == 0) return space;
  const size_t total = static_cast<size_t>(space.n_slots_) * space.block_bytes_;
  // Asked first, because a system that overcommits grants the memory and kills the process when it is
  // touched.
  if (const uint64_t available = available_memory_bytes(); total > available)
    return fail(ErrorCode::kResourceExhausted, "swap space", "{} were asked for, {} are available",
                format_bytes(total), format_bytes(available));
  ASSIGN_OR_RETURN(space.memory_, AlignedBuffer::allocate(total));
  for (int64_t i = space.n_slots_; i-- > 0;) space.free_.push_back(static_cast<int32_t>(i));
  return space;
}

std::optional<std::vector<int32_t>> SwapSpace::store(const KvPool& pool, std::span<const int32_t> blocks) {
  if (blocks.size() > free_.size()) return std::nullopt;
  std::vector<int32_t> slots(free_.end() - std::ssize(blocks), free_.end());
  free_.resize(free_.size() - blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i)
    std::memcpy(slot(slots[i]), pool.block_memory(blocks[i]).data(), block_bytes_);
  return slots;
}

void SwapSpace::load(std::span<const int32_t> slots, KvPool& pool, std::span<const int32_t> blocks) {
  CHECK_OP(slots.size(), <=, blocks.size());
  for (size_t i = 0; i < slots.size(); ++i)
    std::memcpy(pool.block_memory(blocks[i]).data(), slot(slots[i]), block_bytes_);
  drop(slots);
}

void SwapSpace::drop(std::span<const int32_t> slots) {
  free_.insert(free_.end(), slots.begin(), slots.end());
  CHECK_OP(n_free(), <=, n_slots_);
}

}  // namespace assay
