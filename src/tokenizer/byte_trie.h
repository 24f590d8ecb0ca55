// A set of byte strings, each with a value, walked byte by byte.
// Thread safety: const methods may run in parallel. Cost: a step is one hash look-up.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/pair_table.h"

namespace assay::tokenizer_internal {

class ByteTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr int32_t kNoValue = -1;

  ByteTrie() : values_{kNoValue} {}

  // `text` must not be empty and `value` not negative; false when the text is already there.
  bool insert(std::string_view text, int32_t value);

  // The child of `node` along `byte`.
  std::optional<uint32_t> step(uint32_t node, uint8_t byte) const;
  int32_t value(uint32_t node) const { return values_[node]; }

  struct Match {
    size_t length = 0;
    int32_t value = kNoValue;
  };
  // The longest member that starts at text[at]; length 0 when there is none.
  Match longest(std::string_view text, size_t at) const;

  // Whether any member starts with `byte`: a filter before longest().
  bool may_start(uint8_t byte) const { return starts_[byte]; }

 private:
  PairTable edges_;
  std::vector<int32_t> values_;  // by node
  std::array<bool, 256> starts_{};
};

}  // namespace assay::tokenizer_internal
