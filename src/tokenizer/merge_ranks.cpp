#include "tokenizer/merge_ranks.h"

#include <string>
#include <string_view>

namespace assay::tokenizer_internal {

Result<MergeRanks> MergeRanks::create(const Vocabulary& vocabulary) {
  const std::vector<std::string>& merges = vocabulary.spec().merges;
  MergeRanks ranks(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    // The left part is never empty, so a space at the start belongs to it.
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return fail(ErrorCode::kCorrupt, "merges", "expected 'left right', found '{}' at {}", merge, rank);
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    const auto left_id = vocabulary.find(left);
    const auto right_id = vocabulary.find(right);
    const auto whole_id = vocabulary.find(std::string(left).append(right));
    if (!left_id || !right_id || !whole_id) {
      return fail(ErrorCode::kCorrupt, "merges", "merge {} is '{}', but {} is not a token", rank, merge,
                  !left_id    ? "its left part"
                  : !right_id ? "its right part"
                              : "the whole");
    }
    ranks.table_.insert(static_cast<uint32_t>(*left_id), static_cast<uint32_t>(*right_id),
                        uint64_t{rank} << 32 | static_cast<uint32_t>(*whole_id));
  }
  return ranks;
}

}  // namespace assay::tokenizer_internal
