#include "tokenizer/charsmap.h"

namespace assay::tokenizer_internal {
namespace {

// The bit fields of a darts-clone unit.
bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t label(uint32_t unit) {
  return unit & (uint32_t{1} << 31 | 0xFF);
}
uint32_t offset(uint32_t unit) {
  return (unit >> 10) << ((unit & uint32_t{1} << 9) >> 6);
}
uint32_t leaf_value(uint32_t unit) {
  return unit & ~(uint32_t{1} << 31);
}

uint32_t read_u32(std::span<const uint8_t> bytes, size_t at) {
  return bytes[at] | uint32_t{bytes[at + 1]} << 8 | uint32_t{bytes[at + 2]} << 16 |
         uint32_t{bytes[at + 3]} << 24;
}

}  // namespace

Result<Charsmap> Charsmap::create(std::span<const uint8_t> blob) {
  Charsmap map;
  if (blob.empty()) return map;
  constexpr std::string_view kWhere = "precompiled charsmap";
  if (blob.size() < 4)
    return fail(ErrorCode::kCorrupt, kWhere, "expected a length, found {} bytes", blob.size());
  const size_t trie_bytes = read_u32(blob, 0);
  if (trie_bytes % 4 != 0 || trie_bytes > blob.size() - 4) {
    return fail(ErrorCode::kCorrupt, kWhere, "expected a trie within {} bytes, found length {}",
                blob.size() - 4, trie_bytes);
  }
  for (size_t at = 4; at < 4 + trie_bytes; at += 4) map.units_.push_back(read_u32(blob, at));
  const std::span<const uint8_t> rest = blob.subspan(4 + trie_bytes);
  if (!rest.empty() && rest.back() != 0) {
    return fail(ErrorCode::kCorrupt, kWhere, "expected the replacements to end with a zero byte");
  }
  map.replacements_.assign(rest.begin(), rest.end());
  return map;
}

Charsmap::Replacement Charsmap::longest(std::string_view text, size_t at) const {
  Replacement best;
  if (units_.empty()) return best;
  uint32_t node = offset(units_[0]);
  for (size_t end = at; end < text.size(); ++end) {
    const auto byte = static_cast<uint8_t>(text[end]);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) break;
    const uint32_t start = leaf_value(units_[node]);
    if (start < replacements_.size()) best = {replacements_.c_str() + start, end + 1 - at};
  }
  return best;
}

}  // namespace assay::tokenizer_internal
