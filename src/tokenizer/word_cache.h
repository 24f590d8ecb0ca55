// Remembers, during one call of encode(), the ids of the words seen so far: texts repeat their words.
// Direct-mapped: a newer word takes the place of an older one. Short texts get no table at all.
// Thread safety: none needed, it lives inside one call. Cost: 24 bytes per slot, at most 16,384 slots.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace assay::tokenizer_internal {

class WordCache {
 public:
  // `words` is how many will be looked up. The words' text and `ids` must outlive the cache.
  WordCache(size_t words, std::vector<int32_t>& ids) : ids_(ids) {
    if (words >= kMinWords) slots_.resize(std::min(std::bit_floor(words), kMaxSlots));
  }

  // Appends the ids of `word`: copied from its last occurrence, or by compute().
  template <class Compute>
  void append(std::string_view word, const Compute& compute) {
    if (slots_.empty() || word.size() > kMaxWordBytes || word.size() < 2) return compute();
    Slot& slot = slots_[hash(word) & (slots_.size() - 1)];
    if (slot.length == word.size() && std::memcmp(slot.text, word.data(), word.size()) == 0) {
      const size_t old_size = ids_.size();
      ids_.resize(old_size + slot.count);
      std::copy_n(ids_.begin() + static_cast<ptrdiff_t>(slot.first), slot.count,
                  ids_.begin() + static_cast<ptrdiff_t>(old_size));
      return;
    }
    const size_t first = ids_.size();
    compute();
    slot = {word.data(), first, static_cast<uint32_t>(word.size()),
            static_cast<uint32_t>(ids_.size() - first)};
  }

 private:
  static constexpr size_t kMinWords = 64;
  static constexpr size_t kMaxSlots = 16384;
  static constexpr size_t kMaxWordBytes = 64;

  struct Slot {
    const char* text = nullptr;
    size_t first = 0;  // into ids_
    uint32_t length = 0;
    uint32_t count = 0;
  };

  static uint64_t hash(std::string_view word) {
    uint64_t value = word.size();
    for (size_t at = 0; at < word.size(); at += 8) {
      uint64_t chunk = 0;
      std::memcpy(&chunk, word.data() + at, std::min<size_t>(8, word.size() - at));
      value = (value ^ chunk) * 0x9E3779B97F4A7C15u;
      value ^= value >> 32;
    }
    return value;
  }

  std::vector<int32_t>& ids_;
  std::vector<Slot> slots_;
};

}  // namespace assay::tokenizer_internal
