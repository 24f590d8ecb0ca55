// Byte-pair merging: until nothing is left to do, the adjacent pair of the lowest rank is replaced by its
// merged symbol; among equals the leftmost goes first (Sennrich et al. 2016). Short words scan for the best
// pair, long ones keep a heap over a linked list: O(n log n), so that a word of a million letters is no trap.
// Thread safety: pure. Failure: none. Cost: as said.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace assay::tokenizer_internal {

// What two neighbours become, and how early: lower ranks come first. Those that do not merge have the
// highest.
struct Merge {
  static constexpr uint32_t kNever = ~uint32_t{0};
  uint32_t rank = kNever;
  int32_t id = -1;
};

// A stretch of the text; `id` is -1 while it is no token.
struct Symbol {
  int32_t id = -1;
  uint32_t begin = 0;  // offsets in the text being merged
  uint32_t end = 0;
};

// Below this many symbols scanning beats the heap.
inline constexpr size_t kScanLimit = 48;

// find(left, right) -> Merge for two neighbouring symbols. At most kScanLimit symbols.
template <class Find>
void merge_by_scan(std::vector<Symbol>& symbols, const Find& find) {
  std::array<Merge, kScanLimit> merges;  // of symbol i with its right neighbour
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == Merge::kNever) break;
    symbols[best].id = merges[best].id;
    symbols[best].end = symbols[best + 1].end;
    std::copy(symbols.begin() + best + 2, symbols.begin() + count, symbols.begin() + best + 1);
    std::copy(merges.begin() + best + 1, merges.begin() + count - 1, merges.begin() + best);
    --count;
    if (best + 1 < count) merges[best] = find(symbols[best], symbols[best + 1]);
    if (best > 0) merges[best - 1] = find(symbols[best - 1], symbols[best]);
  }
  symbols.resize(count);
}

template <class Find>
class HeapMerger {
 public:
  HeapMerger(std::vector<Symbol>& symbols, const Find& find) : symbols_(symbols), find_(find) {}

  void run() {
    const auto count = static_cast<uint32_t>(symbols_.size());
    for (uint32_t i = 0; i < count; ++i) links_.push_back({i - 1, i + 1});  // the first has previous kNone
    links_.back().next = kNone;
    std::vector<Candidate> first;
    for (uint32_t i = 0; i + 1 < count; ++i) {
      const Merge merge = find_(symbols_[i], symbols_[i + 1]);
      if (merge.rank != Merge::kNever) first.push_back(candidate(merge, i, symbols_[i + 1]));
    }
    heap_ = std::priority_queue<Candidate>({}, std::move(first));
    while (!heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      if (is_current(best)) apply(best);
    }
    compact();
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Link {
    uint32_t previous;
    uint32_t next;
  };
  struct Candidate {
    uint32_t rank;
    uint32_t left;  // index of the left symbol; ties go to the leftmost
    int32_t id;
    uint32_t left_end, right_end;  // where both ended when this was pushed: stale when they have grown since
    bool operator<(const Candidate& other) const {
      return std::tie(rank, left) >
             std::tie(other.rank, other.left);  // std::priority_queue gives the greatest
    }
  };

  Candidate candidate(const Merge& merge, uint32_t left, const Symbol& right) const {
    return {merge.rank, left, merge.id, symbols_[left].end, right.end};
  }

  void push(uint32_t left) {
    if (left == kNone || links_[left].next == kNone) return;
    const Symbol& right = symbols_[links_[left].next];
    const Merge merge = find_(symbols_[left], right);
    if (merge.rank == Merge::kNever) return;
    heap_.push(candidate(merge, left, right));
  }

  bool is_current(const Candidate& candidate) const {
    const Symbol& left = symbols_[candidate.left];
    if (left.begin == left.end || left.end != candidate.left_end) return false;
    const uint32_t next = links_[candidate.left].next;
    return next != kNone && symbols_[next].end == candidate.right_end;
  }

  void apply(const Candidate& candidate) {
    Symbol& left = symbols_[candidate.left];
    const uint32_t taken = links_[candidate.left].next;
    left.id = candidate.id;
    left.end = symbols_[taken].end;
    symbols_[taken].end = symbols_[taken].begin;  // empty: gone
    const uint32_t next = links_[taken].next;
    links_[candidate.left].next = next;
    if (next != kNone) links_[next].previous = candidate.left;
    push(links_[candidate.left].previous);
    push(candidate.left);
  }

  void compact() {
    std::erase_if(symbols_, [](const Symbol& symbol) { return symbol.begin == symbol.end; });
  }

  std::vector<Symbol>& symbols_;
  const Find& find_;
  std::vector<Link> links_;
  std::priority_queue<Candidate> heap_;
};

// Symbols must not be empty stretches.
template <class Find>
void merge_symbols(std::vector<Symbol>& symbols, const Find& find) {
  if (symbols.size() <= kScanLimit)
    merge_by_scan(symbols, find);
  else
    HeapMerger<Find>(symbols, find).run();
}

}  // namespace assay::tokenizer_internal
