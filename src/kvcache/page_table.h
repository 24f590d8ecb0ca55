// The pages of one sequence, in order of position: a growable list of block ids, each holding one reference
// in the pool. The pool must outlive the table and stay where it is. Thread safety: the pool's thread. Cost:
// growing appends to a vector; reserve() takes that out of the step loop.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvcache/kv_pool.h"

namespace assay {

class PageTable {
 public:
  explicit PageTable(KvPool& pool) : pool_(&pool) {}
  PageTable(PageTable&& other) noexcept;
  PageTable& operator=(PageTable&& other) noexcept;
  ~PageTable() { clear(); }

  std::span<const int32_t> blocks() const { return blocks_; }
  int64_t n_positions() const { return static_cast<int64_t>(blocks_.size()) * pool_->layout().page_tokens; }

  void reserve(int64_t n_positions) { blocks_.reserve(static_cast<size_t>(pages_for(n_positions))); }
  // Pages missing for positions [0, n_positions).
  int64_t pages_missing(int64_t n_positions) const;
  // Appends pages until [0, n_positions) is covered: all of them, or none and false when the pool has too
  // few.
  bool grow(int64_t n_positions);
  // Takes over one reference to each block (as PrefixIndex::match() returns them), as the next pages.
  void adopt(std::span<const int32_t> blocks);
  // Puts `block`, whose content is equal, in place of page `page`: takes over one reference to it and
  // releases the old.
  void replace(int64_t page, int32_t block);
  // Releases the pages that hold no position below n_positions.
  void shrink(int64_t n_positions);
  void clear() { shrink(0); }

 private:
  int64_t pages_for(int64_t n_positions) const;

  KvPool* pool_;
  std::vector<int32_t> blocks_;
};

}  // namespace assay
