// A flat hash table from a pair of 32-bit numbers to a 64-bit value: merges (left id, right id) and the edges
// of a trie (node, byte). Open addressing with linear probing, at most half full. Thread safety: find() may
// run in parallel. Cost: one or two cache lines for a look-up; 32 bytes per entry.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::tokenizer_internal {

class PairTable {
 public:
  explicit PairTable(size_t expected = 0) { resize(std::bit_ceil(expected * 2 + 8)); }

  // Keeps the value that is already there; returns false then.
  bool insert(uint32_t first, uint32_t second, uint64_t value) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[locate(key_of(first, second))];
    if (slot.key != kEmpty) return false;
    slot = {key_of(first, second), value};
    ++size_;
    return true;
  }

  // Null when absent; the pointer is valid until the next insert.
  const uint64_t* find(uint32_t first, uint32_t second) const {
    const Slot& slot = slots_[locate(key_of(first, second))];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }

  size_t size() const { return size_; }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // no pair of ids: ids are non-negative 32-bit integers

  struct Slot {
    uint64_t key = kEmpty;
    uint64_t value = 0;
  };

  static uint64_t key_of(uint32_t first, uint32_t second) { return uint64_t{first} << 32 | second; }

  size_t locate(uint64_t key) const {
    size_t at = (key * 0x9E3779B97F4A7C15u) >> shift_;
    while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void resize(size_t capacity) {
    slots_.assign(capacity, Slot{});
    shift_ = 64 - std::countr_zero(capacity);
  }

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    resize(old.size() * 2);
    for (const Slot& slot : old) {
      if (slot.key != kEmpty) slots_[locate(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
  int shift_ = 0;
};

}  // namespace assay::tokenizer_internal
