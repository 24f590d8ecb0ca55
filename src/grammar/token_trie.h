// The tokens of a vocabulary by their bytes, as a trie laid out in preorder: a subtree is a range, so that a
// walk which is cut at a node jumps over everything below it. Immutable; thread safe. Cost: creation sorts
// the tokens; a node takes 12 bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::grammar {

// One bit per token id, least significant first.
using TokenMask = std::vector<uint64_t>;

class TokenTrie {
 public:
  struct Node {
    uint32_t end = 0;          // of the subtree, exclusive
    uint32_t first_token = 0;  // in tokens(); up to the next node's
    uint16_t depth = 1;        // bytes from the root
    uint8_t byte = 0;          // the last of them
  };

  // `texts[id]`: the bytes that the token writes; empty: it writes nothing that a grammar could check
  // (special tokens, unused ids, longer than 65,535 bytes) and is never allowed. `ends`: the tokens that end
  // a text.
  TokenTrie(std::span<const std::string> texts, std::vector<int32_t> ends);

  int32_t n_tokens() const { return static_cast<int32_t>(texts_.size()); }
  size_t n_mask_words() const { return (texts_.size() + 63) / 64; }
  uint32_t n_nodes() const { return static_cast<uint32_t>(nodes_.size() - 1); }
  const Node& node(uint32_t index) const { return nodes_[index]; }
  // The ids of the tokens that end at the node.
  std::span<const int32_t> tokens(uint32_t index) const {
    return std::span(tokens_).subspan(nodes_[index].first_token,
                                      nodes_[index + 1].first_token - nodes_[index].first_token);
  }
  const std::string& text(int32_t id) const { return texts_[static_cast<size_t>(id)]; }
  std::span<const int32_t> ends() const { return ends_; }
  bool is_end(int32_t id) const;
  uint32_t longest() const { return longest_; }  // bytes of the longest token

 private:
  void add(int32_t id, std::string_view previous, std::vector<uint32_t>& path);

  std::vector<std::string> texts_;
  std::vector<int32_t> ends_;
  std::vector<Node> nodes_;  // and one behind the last
  std::vector<int32_t> tokens_;
  uint32_t longest_ = 0;
};

}  // namespace assay::grammar
