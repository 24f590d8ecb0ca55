#include "kvcache/prefix_index.h"

#include <xxhash.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace assay {
namespace {

constexpr uint64_t kRootHash = 0;

}  // namespace

PrefixIndex::PrefixIndex(KvPool& pool, PrefixIndexOptions options)
    : pool_(&pool), options_(options), page_tokens_(pool.layout().page_tokens) {
  const auto n_blocks = static_cast<size_t>(pool.n_blocks());
  if (options_.max_pages < 0) options_.max_pages = pool.n_blocks();
  nodes_.resize(n_blocks);
  tokens_.resize(n_blocks * static_cast<size_t>(page_tokens_));
}

std::span<const int32_t> PrefixIndex::page_of(std::span<const int32_t> tokens, int64_t page) const {
  return tokens.subspan(static_cast<size_t>(page * page_tokens_), static_cast<size_t>(page_tokens_));
}

uint64_t PrefixIndex::hash_page(uint64_t parent_hash, uint64_t salt, std::span<const int32_t> tokens) const {
  const std::array<uint64_t, 2> head = {parent_hash, salt};
  return XXH64(tokens.data(), tokens.size_bytes(), XXH64(head.data(), sizeof(head), 0)) & options_.hash_mask;
}

int32_t PrefixIndex::find(int32_t parent, uint64_t hash, uint64_t salt,
                          std::span<const int32_t> tokens) const {
  const auto head = by_hash_.find(hash);
  if (head == by_hash_.end()) return -1;
  for (int32_t block = head->second; block >= 0; block = node(block).next_same_hash) {
    if (node(block).parent == parent && node(block).salt == salt &&
        std::ranges::equal(page_of(tokens_, block), tokens)) {
      return block;
    }
  }
  return -1;
}

template <class Visit>
void PrefixIndex::walk(std::span<const int32_t> tokens, uint64_t salt, Visit&& visit) const {
  const int64_t n_whole = static_cast<int64_t>(tokens.size()) / page_tokens_;
  int32_t parent = -1;
  uint64_t hash = kRootHash;
  for (int64_t page = 0; page < n_whole; ++page) {
    const auto content = page_of(tokens, page);
    hash = hash_page(hash, salt, content);
    parent = find(parent, hash, salt, content);
    if (parent < 0) return;
    visit(parent);
  }
}

std::vector<int32_t> PrefixIndex::match(std::span<const int32_t> tokens, uint64_t salt) {
  std::vector<int32_t> blocks;
  walk(tokens, salt, [&](int32_t block) { blocks.push_back(block); });
  for (const int32_t block : blocks) pool_->retain(block);
  if (!blocks.empty()) touch_chain(blocks.back());
  const auto n_tokens = static_cast<int64_t>(tokens.size());
  ++stats_.lookups;
  stats_.tokens_asked += n_tokens / page_tokens_ * page_tokens_;
  stats_.tokens_found += static_cast<int64_t>(blocks.size()) * page_tokens_;
  return blocks;
}

int64_t PrefixIndex::match_length(std::span<const int32_t> tokens, uint64_t salt) const {
  int64_t pages = 0;
  walk(tokens, salt, [&](int32_t) { ++pages; });
  return pages * page_tokens_;
}

void PrefixIndex::insert(std::span<const int32_t> tokens, PageTable& table, uint64_t salt) {
  const int64_t n_whole = static_cast<int64_t>(tokens.size()) / page_tokens_;
  CHECK(n_whole <= static_cast<int64_t>(table.blocks().size()));
  int32_t parent = -1;
  uint64_t hash = kRootHash;
  for (int64_t page = 0; page < n_whole; ++page) {
    const auto content = page_of(tokens, page);
    hash = hash_page(hash, salt, content);
    const int32_t own = table.blocks()[static_cast<size_t>(page)];
    const int32_t known = find(parent, hash, salt, content);
    if (known < 0) {
      if (!make_room()) break;
      add(own, parent, hash, salt, content);
      parent = own;
      continue;
    }
    if (known != own) {
      pool_->retain(known);
      table.replace(page, known);
      ++stats_.pages_deduplicated;
    }
    parent = known;
  }
  if (parent >= 0) touch_chain(parent);
}

bool PrefixIndex::make_room() {
  return n_pages_ < options_.max_pages || evict(1) == 1;
}

void PrefixIndex::add(int32_t block, int32_t parent, uint64_t hash, uint64_t salt,
                      std::span<const int32_t> tokens) {
  CHECK(!node(block).used);  // a block's content never changes while the index holds it
  const auto [head, is_new] = by_hash_.try_emplace(hash, -1);
  node(block) = {.hash = hash, .salt = salt, .parent = parent, .next_same_hash = head->second, .used = true};
  head->second = block;
  if (parent >= 0) ++node(parent).n_children;
  std::ranges::copy(tokens, tokens_.begin() + block * page_tokens_);
  link_newest(block);
  pool_->retain(block);
  pool_->set_kept(block, true);
  ++n_pages_;
  ++stats_.pages_inserted;
}

void PrefixIndex::remove(int32_t block) {
  Node& removed = node(block);
  CHECK(removed.used && removed.n_children == 0);
  if (removed.parent >= 0) --node(removed.parent).n_children;
  const auto head = by_hash_.find(removed.hash);
  int32_t* link = &head->second;
  while (*link != block) link = &node(*link).next_same_hash;
  *link = removed.next_same_hash;
  if (head->second < 0) by_hash_.erase(head);
  unlink_use(block);
  removed = {};
  pool_->set_kept(block, false);
  pool_->release(block);
  --n_pages_;
}

int64_t PrefixIndex::evict(int64_t n_pages) {
  // A parent is always newer than its children (touch_chain), so one pass from the oldest meets children
  // first.
  int64_t n_evicted = 0;
  for (int32_t block = oldest_; block >= 0 && n_evicted < n_pages;) {
    const int32_t next = node(block).newer;
    if (node(block).n_children == 0 && pool_->reference_count(block) == 1) {
      remove(block);
      ++n_evicted;
    }
    block = next;
  }
  stats_.pages_evicted += n_evicted;
  return n_evicted;
}

void PrefixIndex::clear() {
  while (oldest_ >= 0) remove(oldest_);
}

void PrefixIndex::touch_chain(int32_t last) {
  for (int32_t block = last; block >= 0; block = node(block).parent) {
    unlink_use(block);
    link_newest(block);
  }
}

void PrefixIndex::unlink_use(int32_t block) {
  Node& self = node(block);
  (self.newer >= 0 ? node(self.newer).older : newest_) = self.older;
  (self.older >= 0 ? node(self.older).newer : oldest_) = self.newer;
  self.newer = self.older = -1;
}

void PrefixIndex::link_newest(int32_t block) {
  Node& self = node(block);
  self.older = newest_;
  self.newer = -1;
  (newest_ >= 0 ? node(newest_).newer : oldest_) = block;
  newest_ = block;
}

}  // namespace assay
