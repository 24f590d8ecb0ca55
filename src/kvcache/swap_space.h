// Memory beside the pool for the pages of sequences that had to give theirs up: whole blocks are copied out
// and later in, bit for bit.
//
// Memory is allocated whole at creation; store() never asks the system for more. Ownership: the space must
// not outlive the pool's layout it was made for. Thread safety: one thread (the step loop). Cost: one copy of
// a block each way.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "base/error.h"
#include "kvcache/kv_pool.h"

namespace assay {

class SwapSpace {
 public:
  SwapSpace() = default;  // holds nothing
  // As many whole blocks as `bytes` hold. kResourceExhausted when the memory cannot be had.
  static Result<SwapSpace> create(const KvLayout& layout, uint64_t bytes);

  int64_t n_slots() const { return n_slots_; }
  int64_t n_free() const { return static_cast<int64_t>(free_.size()); }

  // Copies the blocks out; their slots, or nothing and no change when there are too few.
  std::optional<std::vector<int32_t>> store(const KvPool& pool, std::span<const int32_t> blocks);
  // Copies slots[i] into blocks[i] (at least as many) and frees the slots.
  void load(std::span<const int32_t> slots, KvPool& pool, std::span<const int32_t> blocks);
  void drop(std::span<const int32_t> slots);

 private:
  std::byte* slot(int32_t index) { return memory_.data() + static_cast<size_t>(index) * block_bytes_; }

  size_t block_bytes_ = 0;
  int64_t n_slots_ = 0;
  AlignedBuffer memory_;  // [n_slots, block_bytes]
  std::vector<int32_t> free_;
};

}  // namespace assay
