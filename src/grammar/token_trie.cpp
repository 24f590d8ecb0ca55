#include "grammar/token_trie.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace assay::grammar {

TokenTrie::TokenTrie(std::span<const std::string> texts, std::vector<int32_t> ends)
    : texts_(texts.begin(), texts.end()), ends_(std::move(ends)) {
  for (std::string& text : texts_)
    if (text.size() > std::numeric_limits<uint16_t>::max()) text.clear();
  for (const int32_t id : ends_) texts_[static_cast<size_t>(id)].clear();
  std::vector<int32_t> order;
  for (int32_t id = 0; id < n_tokens(); ++id)
    if (!text(id).empty()) order.push_back(id);
  std::ranges::sort(order,
                    [&](int32_t a, int32_t b) { return text(a) < text(b) || (text(a) == text(b) && a < b); });
  std::vector<uint32_t> path;  // the open nodes
  std::string_view previous;
  for (const int32_t id : order) {
    add(id, previous, path);
    previous = text(id);
  }
  for (const uint32_t open : path) nodes_[open].end = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({.end = static_cast<uint32_t>(nodes_.size() + 1),
                    .first_token = static_cast<uint32_t>(tokens_.size())});
}

void TokenTrie::add(int32_t id, std::string_view previous, std::vector<uint32_t>& path) {
  const std::string_view own = text(id);
  const auto common = static_cast<size_t>(std::ranges::mismatch(previous, own).in2 - own.begin());
  for (; path.size() > common; path.pop_back())
    nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
  for (size_t i = common; i < own.size(); ++i) {
    path.push_back(static_cast<uint32_t>(nodes_.size()));
    nodes_.push_back({.first_token = static_cast<uint32_t>(tokens_.size()),
                      .depth = static_cast<uint16_t>(i + 1),
                      .byte = static_cast<uint8_t>(own[i])});
  }
  tokens_.push_back(id);  // sorted: the token's node is the last one
  longest_ = std::max(longest_, static_cast<uint32_t>(own.size()));
}

bool TokenTrie::is_end(int32_t id) const {
  return std::ranges::find(ends_, id) != ends_.end();
}

}  // namespace assay::grammar
