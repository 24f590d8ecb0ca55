// Finds pages that already hold the start of a token sequence, so that its prefill can skip them.
//
// A full page is known by a hash chain, xxhash64(parent hash, salt, the page's tokens) (the scheme of vLLM's
// automatic prefix caching), and the tokens themselves are compared, so a collision costs a miss and never
// gives wrong pages.
//
// What may be shared. Keys and values of a token depend on every token before it and on the activation format
// each was computed at (its phase). Callers insert positions that were all computed as prompt, or any when
// both phases have one format. `salt` separates what must not be shared otherwise (tenants, for one).
//
// The index holds one reference to each of its pages and marks it as kept in the pool. Pages that nobody else
// references are evicted least recently used first, children before parents; pool.n_idle() says how many
// those are.
//
// Ownership: the pool must outlive the index and stay where it is. Thread safety: the pool's thread.
// Cost: one hash and one comparison of page_tokens ids per page; evict() looks at most at every kept page
// once.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "kvcache/kv_pool.h"
#include "kvcache/page_table.h"

namespace assay {

struct PrefixStats {
  int64_t lookups = 0;
  int64_t tokens_asked = 0;  // in whole pages
  int64_t tokens_found = 0;
  int64_t pages_inserted = 0;
  int64_t pages_deduplicated = 0;  // inserted pages that were there already
  int64_t pages_evicted = 0;
};

struct PrefixIndexOptions {
  int64_t max_pages = -1;             // hard budget of kept pages; -1: as many as the pool has
  uint64_t hash_mask = ~uint64_t{0};  // fewer bits make collisions common; for tests
};

class PrefixIndex {
 public:
  explicit PrefixIndex(KvPool& pool, PrefixIndexOptions options = {});
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;
  ~PrefixIndex() { clear(); }

  // The longest known chain of whole pages that `tokens` starts with. The caller gets one reference to each
  // (PageTable::adopt()). Whoever needs logits must leave the last token out: something has to be computed.
  std::vector<int32_t> match(std::span<const int32_t> tokens, uint64_t salt = 0);
  // How many tokens match() would give, without taking references or counting as a use.
  int64_t match_length(std::span<const int32_t> tokens, uint64_t salt = 0) const;

  // Makes the whole pages of `tokens` findable: the leading positions of `table`, already computed. A page
  // whose content is known already is replaced in the table by the known one, and its memory freed; so
  // whoever holds a page of the index also holds those before it. Stops early when the budget is full of
  // pages in use.
  void insert(std::span<const int32_t> tokens, PageTable& table, uint64_t salt = 0);

  // Gives back up to `n_pages` idle pages to the pool; returns how many.
  int64_t evict(int64_t n_pages);
  void clear();

  int64_t n_pages() const { return n_pages_; }
  const PrefixStats& stats() const { return stats_; }

 private:
  // A node is known by the block it describes. -1: none.
  struct Node {
    uint64_t hash = 0;
    uint64_t salt = 0;
    int32_t parent = -1;
    int32_t n_children = 0;
    int32_t next_same_hash = -1;
    int32_t newer = -1, older = -1;  // the list of uses
    bool used = false;
  };

  uint64_t hash_page(uint64_t parent_hash, uint64_t salt, std::span<const int32_t> tokens) const;
  int32_t find(int32_t parent, uint64_t hash, uint64_t salt, std::span<const int32_t> tokens) const;
  // Calls visit(block) for every page of the longest known chain.
  template <class Visit>
  void walk(std::span<const int32_t> tokens, uint64_t salt, Visit&& visit) const;
  bool make_room();
  void add(int32_t block, int32_t parent, uint64_t hash, uint64_t salt, std::span<const int32_t> tokens);
  void remove(int32_t block);
  void unlink_use(int32_t block);
  void link_newest(int32_t block);
  void touch_chain(int32_t last);
  Node& node(int32_t block) { return nodes_[static_cast<size_t>(block)]; }
  const Node& node(int32_t block) const { return nodes_[static_cast<size_t>(block)]; }
  std::span<const int32_t> page_of(std::span<const int32_t> tokens, int64_t page) const;

  KvPool* pool_;
  PrefixIndexOptions options_;
  int64_t page_tokens_;
  int64_t n_pages_ = 0;
  std::vector<Node> nodes_;                        // [n_blocks]
  std::vector<int32_t> tokens_;                    // [n_blocks, page_tokens]
  std::unordered_map<uint64_t, int32_t> by_hash_;  // head of the chain of equal hashes
  int32_t newest_ = -1, oldest_ = -1;
  PrefixStats stats_;
};

}  // namespace assay
