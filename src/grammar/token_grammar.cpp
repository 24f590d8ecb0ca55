#include "grammar/token_grammar.h"

#include <algorithm>

#include "base/check.h"

namespace assay::grammar {

TokenGrammar::TokenGrammar(Automaton automaton, std::shared_ptr<const TokenTrie> trie)
    : automaton_(std::move(automaton)),
      trie_(std::move(trie)),
      configurations_(std::make_shared<Configurations>(automaton_)),
      stack_(size_t{trie_->longest()} + 1) {}

TokenGrammar::Position TokenGrammar::start() {
  const std::scoped_lock lock(mutex_);
  Position position;
  position.configurations_ = configurations_;
  position.id_ = configurations_->start();
  return position;
}

// Positions that were made before everything was forgotten move over when they are used.
void TokenGrammar::bring_here(Position& position) {
  CHECK(position.configurations_ != nullptr);
  if (position.configurations_ == configurations_) return;
  position.id_ = configurations_->import(*position.configurations_, position.id_);
  position.configurations_ = configurations_;
}

void TokenGrammar::forget_if_large() {
  if (mask_bytes_ + configurations_->bytes() < kCacheBytes) return;
  configurations_ = std::make_shared<Configurations>(automaton_);
  states_.clear();
  masks_.clear();
  mask_bytes_ = 0;
}

uint64_t TokenGrammar::cached_bytes() const {
  const std::scoped_lock lock(mutex_);
  return mask_bytes_ + configurations_->bytes();
}

static std::unexpected<Error> overflow() {
  return fail(ErrorCode::kResourceExhausted, "grammar", "too ambiguous: one step needs more than {} states",
              Configurations::kMaxFrames);
}

Result<void> TokenGrammar::mask(Position& position, std::span<uint64_t> mask) {
  const std::scoped_lock lock(mutex_);
  CHECK_OP(mask.size(), ==, trie_->n_mask_words());
  forget_if_large();
  bring_here(position);
  // A token of n bytes passes at most n repetitions.
  const ConfigId id = configurations_->clamp(position.id_, trie_->longest() + 1);
  std::ranges::copy(full_mask(id), mask.begin());
  if (configurations_->overflowed()) return overflow();
  return {};
}

Result<void> TokenGrammar::advance(Position& position, int32_t token) {
  if (token < 0 || token >= trie_->n_tokens() || trie_->text(token).empty())
    return fail(ErrorCode::kInvalidArgument, "grammar", "token {} writes no text", token);
  return advance_bytes(position, trie_->text(token));
}

Result<void> TokenGrammar::advance_bytes(Position& position, std::string_view bytes) {
  const std::scoped_lock lock(mutex_);
  forget_if_large();
  bring_here(position);
  ConfigId id = position.id_;
  for (size_t i = 0; i < bytes.size(); ++i) {
    id = configurations_->step(id, static_cast<uint8_t>(bytes[i]));
    if (configurations_->overflowed()) return overflow();
    if (id == Configurations::kDead)
      return fail(ErrorCode::kInvalidArgument, "grammar", "byte {:#04x} may not follow here",
                  static_cast<uint8_t>(bytes[i]));
  }
  position.id_ = id;
  return {};
}

bool TokenGrammar::may_end(Position& position) {
  const std::scoped_lock lock(mutex_);
  return position.configurations_->may_end(position.id_);
}

bool TokenGrammar::must_end(Position& position) {
  const std::scoped_lock lock(mutex_);
  return position.configurations_->must_end(position.id_);
}

// Sets the tokens among the trie's nodes [begin, end) that `from` allows. The nodes must be whole subtrees of
// one depth or more. With `leaves`: the nodes at which the text may end, which have others below them.
void TokenGrammar::walk(ConfigId from, uint32_t begin, uint32_t end, TokenMask& allowed,
                        std::vector<uint32_t>* leaves) {
  if (begin >= end) return;
  stack_[trie_->node(begin).depth - 1U] = from;
  for (uint32_t i = begin; i < end;) {
    const TokenTrie::Node& node = trie_->node(i);
    const ConfigId id = configurations_->step(stack_[node.depth - 1U], node.byte);
    if (id == Configurations::kDead) {
      i = node.end;
      continue;
    }
    stack_[node.depth] = id;
    for (const int32_t token : trie_->tokens(i)) {
      const auto bit = static_cast<uint32_t>(token);
      allowed[bit / 64] |= uint64_t{1} << (bit % 64);
    }
    ++i;
    if (leaves != nullptr && i < node.end && configurations_->may_end(id)) leaves->push_back(i - 1);
    if (id == Configurations::kEnded) i = node.end;
  }
}

const TokenGrammar::StateMask& TokenGrammar::state_mask(StateId state) {
  const auto [entry, added] = states_.try_emplace(state);
  if (!added) return entry->second;
  StateMask& mask = entry->second;
  mask.allowed.assign(trie_->n_mask_words(), 0);
  // As if nothing lay below: where the text may end, the rule is complete. What else the state leads to
  // without a byte has frames of its own.
  const ConfigId alone = configurations_->only({state, 0, 0, Configurations::kEnded});
  walk(alone, 0, trie_->n_nodes(), mask.allowed, &mask.leaves);
  mask_bytes_ += mask.allowed.size() * 8 + mask.leaves.size() * 4 + 128;
  return mask;
}

const TokenMask& TokenGrammar::full_mask(ConfigId id) {
  const auto [entry, added] = masks_.try_emplace(id);
  if (!added) return entry->second;
  TokenMask mask(trie_->n_mask_words(), 0);
  const std::vector<Frame> frames(configurations_->frames(id).begin(), configurations_->frames(id).end());
  for (const Frame& frame : frames) {
    const StateMask& own = state_mask(frame.state);
    for (size_t word = 0; word < mask.size(); ++word) mask[word] |= own.allowed[word];
    if (frame.parent == Configurations::kEnded) continue;
    const ConfigId after = configurations_->close_parent(frame.parent);
    for (const uint32_t leaf : own.leaves) walk(after, leaf + 1, trie_->node(leaf).end, mask, nullptr);
  }
  if (configurations_->may_end(id)) {
    for (const int32_t token : trie_->ends()) {
      const auto bit = static_cast<uint32_t>(token);
      mask[bit / 64] |= uint64_t{1} << (bit % 64);
    }
  }
  mask_bytes_ += mask.size() * 8 + 64;
  return masks_[id] = std::move(mask);
}

}  // namespace assay::grammar
