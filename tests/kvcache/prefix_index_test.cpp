#include "kvcache/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "kvcache/property.h"

namespace assay {
namespace {

constexpr int kPageTokens = 4;

KvPool make_pool(int64_t n_blocks) {
  return KvPool::create({.n_layers = 1, .n_kv_heads = 1, .head_dim = 2, .page_tokens = kPageTokens}, n_blocks)
      .value();
}

std::vector<int32_t> counting(int n) {
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), 100);
  return tokens;
}

TEST(PrefixIndex, match_returns_the_longest_chain_of_whole_pages) {
  auto pool = make_pool(8);
  PrefixIndex index(pool);
  PageTable table(pool);
  const auto tokens = counting(11);
  ASSERT_TRUE(table.grow(11));
  index.insert(tokens, table);
  EXPECT_EQ(index.n_pages(), 2);

  const auto found = index.match(tokens);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(std::ranges::equal(found, table.blocks().first(2)));
  EXPECT_EQ(pool.reference_count(found[0]), 3);  // table, index, this match

  auto other = tokens;
  other[5] = 7;  // in the second page
  EXPECT_EQ(index.match_length(other), kPageTokens);
  other = tokens;
  other[0] = 7;  // the second page is equal, its prefix is not
  EXPECT_EQ(index.match_length(other), 0);
  EXPECT_EQ(index.match_length(std::span(tokens).first(7)), kPageTokens);
  for (const int32_t block : found) pool.release(block);
}

TEST(PrefixIndex, salt_separates_equal_tokens) {
  auto pool = make_pool(8);
  PrefixIndex index(pool);
  PageTable table(pool);
  const auto tokens = counting(8);
  ASSERT_TRUE(table.grow(8));
  index.insert(tokens, table, 1);
  EXPECT_EQ(index.match_length(tokens, 1), 8);
  EXPECT_EQ(index.match_length(tokens, 2), 0);
}

TEST(PrefixIndex, known_page_replaces_its_duplicate_and_frees_it) {
  auto pool = make_pool(8);
  PrefixIndex index(pool);
  PageTable first(pool), second(pool);
  const auto tokens = counting(8);
  ASSERT_TRUE(first.grow(8) && second.grow(8));
  index.insert(tokens, first);
  EXPECT_EQ(pool.n_free(), 4);
  index.insert(tokens, second);
  EXPECT_EQ(pool.n_free(), 6);
  EXPECT_TRUE(std::ranges::equal(first.blocks(), second.blocks()));
  EXPECT_EQ(index.stats().pages_deduplicated, 2);
}

TEST(PrefixIndex, eviction_spares_pages_in_use_and_takes_the_oldest_first) {
  auto pool = make_pool(6);
  PrefixIndex index(pool);
  PageTable a(pool), b(pool), c(pool);
  const std::vector<int32_t> ta(8, 1), tb(8, 2), tc(8, 3);
  for (const auto& [tokens, table] : {std::pair{&ta, &a}, {&tb, &b}, {&tc, &c}}) {
    ASSERT_TRUE(table->grow(8));
    index.insert(*tokens, *table);
  }
  a.clear();
  b.clear();
  EXPECT_EQ(pool.n_idle(), 4);
  for (const int32_t block : index.match(ta)) pool.release(block);  // a is now newer than b
  EXPECT_EQ(index.evict(1), 1);
  EXPECT_EQ(index.match_length(tb), kPageTokens);  // b lost its last page first
  EXPECT_EQ(index.evict(2), 2);
  EXPECT_EQ(index.match_length(tb), 0);
  EXPECT_EQ(index.match_length(ta), kPageTokens);
  EXPECT_EQ(index.evict(100), 1);
  EXPECT_EQ(index.match_length(tc), 8);  // still held by its sequence
  EXPECT_EQ(pool.n_free(), 4);
}

TEST(PrefixIndex, budget_is_never_exceeded) {
  auto pool = make_pool(16);
  PrefixIndex index(pool, {.max_pages = 3});
  PageTable held(pool);
  const auto tokens = counting(20);
  ASSERT_TRUE(held.grow(20));
  index.insert(tokens, held);
  EXPECT_EQ(index.n_pages(), 3);  // its own pages are in use: nothing to evict, so the rest is not kept
  PageTable next(pool);
  const std::vector<int32_t> other(8, 5);
  ASSERT_TRUE(next.grow(8));
  index.insert(other, next);
  EXPECT_EQ(index.match_length(other), 0);
  held.clear();
  index.insert(other, next);
  EXPECT_EQ(index.n_pages(), 3);
  EXPECT_EQ(index.match_length(other), 8);
  EXPECT_EQ(index.match_length(tokens), kPageTokens);
}

TEST(PrefixIndex, destruction_returns_every_page) {
  auto pool = make_pool(8);
  {
    PrefixIndex index(pool);
    PageTable table(pool);
    ASSERT_TRUE(table.grow(32));
    index.insert(counting(32), table);
  }
  EXPECT_EQ(pool.n_free(), 8);
  EXPECT_EQ(pool.n_idle(), 0);
}

// The oracle: known prefixes (salt first) with their pages, in order of use, oldest first, and what each page
// of memory holds. Everything is found by comparing whole prefixes; there are no hashes, links or counts.
using Prefix = std::vector<int32_t>;

struct Known {
  Prefix prefix;
  int32_t block;
};

struct Sequence {
  Prefix tokens;
  int32_t salt = 0;
  PageTable table;

  size_t n_whole() const { return tokens.size() / kPageTokens; }
  Prefix prefix(size_t page) const {
    Prefix key = {salt};
    const size_t n = std::min(tokens.size(), (page + 1) * kPageTokens);
    key.insert(key.end(), tokens.begin(), tokens.begin() + static_cast<long>(n));
    return key;
  }
};

class World {
 public:
  World(int64_t n_blocks, int64_t max_pages, uint64_t hash_mask)
      : pool_(make_pool(n_blocks)), max_pages_(max_pages), index_(pool_, {max_pages, hash_mask}) {}

  void start(Prefix tokens, int32_t salt) {
    Sequence sequence{std::move(tokens), salt, PageTable(pool_)};
    const auto found = index_.match(sequence.tokens, static_cast<uint64_t>(salt));
    RC_ASSERT(found.size() == known_pages(sequence));
    for (size_t page = 0; page < found.size(); ++page) {
      RC_ASSERT(content_.at(found[page]) == sequence.prefix(page));  // never the pages of another prefix
    }
    use_chain(sequence, found.size());
    sequence.table.adopt(found);
    if (!sequence.table.grow(static_cast<int64_t>(sequence.tokens.size())))
      return;  // its references go with it
    for (size_t page = found.size(); page < sequence.table.blocks().size(); ++page) {
      content_[sequence.table.blocks()[page]] = sequence.prefix(page);
    }
    sequences_.push_back(std::move(sequence));
  }

  void finish(size_t pick) {
    if (!sequences_.empty())
      sequences_.erase(sequences_.begin() + static_cast<long>(pick % sequences_.size()));
  }

  void insert(size_t pick) {
    if (sequences_.empty()) return;
    Sequence& sequence = sequences_[pick % sequences_.size()];
    index_.insert(sequence.tokens, sequence.table, static_cast<uint64_t>(sequence.salt));
    size_t page = known_pages(sequence);
    for (; page < sequence.n_whole(); ++page) {
      if (static_cast<int64_t>(known_.size()) >= max_pages_ && evict_oldest(1) == 0) break;
      known_.push_back({sequence.prefix(page), sequence.table.blocks()[page]});
    }
    for (size_t i = 0; i < page; ++i)
      RC_ASSERT(content_.at(sequence.table.blocks()[i]) == sequence.prefix(i));
    use_chain(sequence, page);
  }

  void evict(int64_t n) { RC_ASSERT(index_.evict(n) == evict_oldest(n)); }

  void check() const {
    std::map<int32_t, int> expected;  // references by page
    for (const Sequence& sequence : sequences_) {
      for (const int32_t block : sequence.table.blocks()) ++expected[block];
      RC_ASSERT(index_.match_length(sequence.tokens, static_cast<uint64_t>(sequence.salt)) ==
                static_cast<int64_t>(known_pages(sequence)) * kPageTokens);
    }
    int64_t n_idle = 0;
    for (const Known& known : known_) n_idle += ++expected[known.block] == 1 ? 1 : 0;
    for (int32_t block = 0; block < pool_.n_blocks(); ++block) {
      RC_ASSERT(pool_.reference_count(block) == (expected.contains(block) ? expected.at(block) : 0));
    }
    RC_ASSERT(pool_.n_free() == pool_.n_blocks() - static_cast<int64_t>(expected.size()));
    RC_ASSERT(pool_.n_idle() == n_idle);
    RC_ASSERT(pool_.n_kept() == static_cast<int64_t>(known_.size()));
    RC_ASSERT(index_.n_pages() == static_cast<int64_t>(known_.size()));
    RC_ASSERT(index_.n_pages() <= max_pages_);
  }

 private:
  std::vector<Known>::iterator find(const Prefix& prefix) {
    return std::ranges::find(known_, prefix, &Known::prefix);
  }
  size_t known_pages(const Sequence& sequence) const {
    size_t page = 0;
    while (page < sequence.n_whole() && std::ranges::count(known_, sequence.prefix(page), &Known::prefix) > 0)
      ++page;
    return page;
  }
  void use_chain(const Sequence& sequence, size_t n_pages) {
    for (size_t page = n_pages; page-- > 0;) {
      const auto at = find(sequence.prefix(page));
      std::rotate(at, at + 1, known_.end());
    }
  }
  bool evictable(const Known& known) const {
    const bool has_children = std::ranges::any_of(known_, [&](const Known& other) {
      return other.prefix.size() == known.prefix.size() + kPageTokens &&
             std::equal(known.prefix.begin(), known.prefix.end(), other.prefix.begin());
    });
    const bool in_use = std::ranges::any_of(sequences_, [&](const Sequence& sequence) {
      return std::ranges::count(sequence.table.blocks(), known.block) > 0;
    });
    return !has_children && !in_use;
  }
  int64_t evict_oldest(int64_t n) {
    int64_t n_evicted = 0;
    for (size_t i = 0; i < known_.size() && n_evicted < n;) {
      if (evictable(known_[i])) {
        known_.erase(known_.begin() + static_cast<long>(i));
        ++n_evicted;
      } else {
        ++i;
      }
    }
    return n_evicted;
  }

  KvPool pool_;
  int64_t max_pages_;
  PrefixIndex index_;
  std::vector<Known> known_;
  std::map<int32_t, Prefix> content_;
  std::vector<Sequence> sequences_;
};

// Two symbols a token and few pages: prefixes are shared, duplicated, evicted and found again all the time.
void run_world(const std::vector<std::pair<uint8_t, uint16_t>>& operations, uint64_t hash_mask) {
  World world(12, 7, hash_mask);
  for (const auto& [kind, detail] : operations) {
    switch (kind % 5) {
      case 0:
      case 1: {
        Prefix tokens;
        const int n = 1 + detail % 13;
        for (int i = 0; i < n; ++i) tokens.push_back(detail >> (4 + i / kPageTokens) & 1);
        world.start(std::move(tokens), detail >> 14);
        break;
      }
      case 2:
        world.insert(detail);
        break;
      case 3:
        world.finish(detail);
        break;
      case 4:
        world.evict(detail % 4);
        break;
    }
    world.check();
  }
}

TEST(PrefixIndex, random_operations_agree_with_whole_prefix_comparison) {
  test::check_property(
      [](const std::vector<std::pair<uint8_t, uint16_t>>& operations) {
        run_world(operations, ~uint64_t{0});
      },
      400);
}

TEST(PrefixIndex, colliding_hashes_never_give_wrong_pages) {
  test::check_property(
      [](const std::vector<std::pair<uint8_t, uint16_t>>& operations) { run_world(operations, 1); }, 400);
}

}  // namespace
}  // namespace assay
