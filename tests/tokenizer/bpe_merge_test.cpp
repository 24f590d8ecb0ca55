#include "tokenizer/bpe_merge.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace assay::tokenizer_internal {
namespace {

using Ids = std::vector<int32_t>;
using Merges = std::map<std::pair<int32_t, int32_t>, Merge>;

// The definition: find the best pair by looking at all of them, replace it, start again.
Ids merge_by_definition(Ids ids, const Merges& merges) {
  while (true) {
    uint32_t best_rank = Merge::kNever;
    size_t best = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto merge = merges.find({ids[i], ids[i + 1]});
      if (merge != merges.end() && merge->second.rank < best_rank) best_rank = merge->second.rank, best = i;
    }
    if (best_rank == Merge::kNever) return ids;
    ids[best] = merges.at({ids[best], ids[best + 1]}).id;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

Ids merge(const Ids& ids, const Merges& merges) {
  std::vector<Symbol> symbols;
  for (uint32_t i = 0; i < ids.size(); ++i) symbols.push_back({ids[i], i, i + 1});
  merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) {
    const auto found = merges.find({left.id, right.id});
    return found == merges.end() ? Merge{} : found->second;
  });
  Ids result;
  uint32_t at = 0;
  for (const Symbol& symbol : symbols) {
    EXPECT_EQ(symbol.begin, at);  // the symbols still cover the text without gaps
    at = symbol.end;
    result.push_back(symbol.id);
  }
  EXPECT_EQ(at, ids.size());
  return result;
}

TEST(BpeMerge, agrees_with_the_definition) {
  Random random(11);
  for (int round = 0; round < 400; ++round) {
    Merges merges;  // few letters and many merges: every kind of overlap occurs
    int32_t next_id = 4;
    for (uint32_t rank = 0; rank < 25; ++rank) {
      const auto left = static_cast<int32_t>(random.below(next_id));
      const auto right = static_cast<int32_t>(random.below(next_id));
      if (merges.emplace(std::pair(left, right), Merge{rank, next_id}).second) ++next_id;
    }
    Ids ids(random.below(round % 2 == 0 ? kScanLimit : 400) + 1);  // both algorithms
    for (int32_t& id : ids) id = static_cast<int32_t>(random.below(round % 3 == 0 ? 1 : 4));
    EXPECT_EQ(merge(ids, merges), merge_by_definition(ids, merges));
  }
}

}  // namespace
}  // namespace assay::tokenizer_internal
