#include "tokenizer/byte_trie.h"

#include "base/check.h"

namespace assay::tokenizer_internal {

bool ByteTrie::insert(std::string_view text, int32_t value) {
  CHECK(!text.empty() && value >= 0);
  uint32_t node = kRoot;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (const auto child = step(node, byte)) {
      node = *child;
      continue;
    }
    const auto child = static_cast<uint32_t>(values_.size());
    edges_.insert(node, byte, child);
    values_.push_back(kNoValue);
    node = child;
  }
  starts_[static_cast<uint8_t>(text[0])] = true;
  if (values_[node] != kNoValue) return false;
  values_[node] = value;
  return true;
}

std::optional<uint32_t> ByteTrie::step(uint32_t node, uint8_t byte) const {
  const uint64_t* child = edges_.find(node, byte);
  if (child == nullptr) return std::nullopt;
  return static_cast<uint32_t>(*child);
}

ByteTrie::Match ByteTrie::longest(std::string_view text, size_t at) const {
  Match best;
  uint32_t node = kRoot;
  for (size_t end = at; end < text.size();) {
    const auto child = step(node, static_cast<uint8_t>(text[end++]));
    if (!child) break;
    node = *child;
    if (values_[node] != kNoValue) best = {end - at, values_[node]};
  }
  return best;
}

}  // namespace assay::tokenizer_internal
