#include "kvcache/page_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"

namespace assay {

PageTable::PageTable(PageTable&& other) noexcept
    : pool_(other.pool_), blocks_(std::exchange(other.blocks_, {})) {}

PageTable& PageTable::operator=(PageTable&& other) noexcept {
  if (this != &other) {
    clear();
    pool_ = other.pool_;
    blocks_ = std::exchange(other.blocks_, {});
  }
  return *this;
}

int64_t PageTable::pages_for(int64_t n_positions) const {
  const int64_t page_tokens = pool_->layout().page_tokens;
  return (std::max<int64_t>(n_positions, 0) + page_tokens - 1) / page_tokens;
}

int64_t PageTable::pages_missing(int64_t n_positions) const {
  return std::max<int64_t>(pages_for(n_positions) - static_cast<int64_t>(blocks_.size()), 0);
}

bool PageTable::grow(int64_t n_positions) {
  const int64_t missing = pages_missing(n_positions);
  if (missing > pool_->n_free()) return false;
  for (int64_t i = 0; i < missing; ++i) blocks_.push_back(*pool_->allocate());
  return true;
}

void PageTable::adopt(std::span<const int32_t> blocks) {
  blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
}

void PageTable::replace(int64_t page, int32_t block) {
  CHECK(page >= 0 && page < static_cast<int64_t>(blocks_.size()));
  pool_->release(std::exchange(blocks_[static_cast<size_t>(page)], block));
}

void PageTable::shrink(int64_t n_positions) {
  // Last page first, so that the next allocation hands them out in order of position again.
  const auto keep = static_cast<size_t>(pages_for(n_positions));
  while (blocks_.size() > keep) {
    pool_->release(blocks_.back());
    blocks_.pop_back();
  }
}

}  // namespace assay
