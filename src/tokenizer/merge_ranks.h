// The merge list of a vocabulary, by ids: which pair becomes which token, and in what order.
// Thread safety: find() may run in parallel. Failure: create() only. Cost: 32 bytes per merge.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "tokenizer/bpe_merge.h"
#include "tokenizer/pair_table.h"
#include "tokenizer/vocabulary.h"

namespace assay::tokenizer_internal {

class MergeRanks {
 public:
  // A merge that is not "left right", or whose parts or whole are not tokens, is kCorrupt.
  static Result<MergeRanks> create(const Vocabulary& vocabulary);

  Merge find(int32_t left, int32_t right) const {
    const uint64_t* value = table_.find(static_cast<uint32_t>(left), static_cast<uint32_t>(right));
    if (value == nullptr) return {};
    return {static_cast<uint32_t>(*value >> 32), static_cast<int32_t>(*value & 0xFFFFFFFF)};
  }

 private:
  explicit MergeRanks(size_t expected) : table_(expected) {}

  PairTable table_;
};

}  // namespace assay::tokenizer_internal
