// A grammar over the tokens of one vocabulary: which tokens may come next, as a mask of bits.
//
// How it is fast (after XGrammar, Dong et al. 2024): whether a token may follow depends for nearly all tokens
// on the innermost state alone. For each state met, that part is computed once by a walk over the trie of the
// vocabulary, together with the nodes at which the state's rule may be complete; only what hangs below those
// is walked with the whole stack. Whole masks are kept too, by configuration. Repetition counts that no
// single token can exhaust count as unbounded, so that a bounded string meets few states.
//
// A position is a value: copy it, keep several. The mask's last set bits are those of the end tokens, exactly
// where the text may end. Every position that advance() returned can be finished, as far as single bytes are
// tokens.
//
// Thread safety: any thread; calls are serialised by one lock per grammar. Memory: what is kept is bounded by
// kCacheBytes and then forgotten as a whole; positions survive that. Failure: kResourceExhausted where an
// ambiguous grammar needs too many states at once; kInvalidArgument when a token does not follow. Cost: a
// known mask is a copy; a new state costs a walk over the trie (measured in bench/grammar/mask_bench.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "grammar/automaton.h"
#include "grammar/configurations.h"
#include "grammar/token_trie.h"

namespace assay::grammar {

class TokenGrammar {
 public:
  static constexpr uint64_t kCacheBytes = uint64_t{12} << 20;

  class Position {
   public:
    Position() = default;

   private:
    friend class TokenGrammar;
    std::shared_ptr<Configurations> configurations_;
    ConfigId id_ = 0;
  };

  TokenGrammar(Automaton automaton, std::shared_ptr<const TokenTrie> trie);

  const TokenTrie& trie() const { return *trie_; }
  const Automaton& automaton() const { return automaton_; }

  Position start();
  // Fills `mask` ([trie().n_mask_words()]).
  Result<void> mask(Position& position, std::span<uint64_t> mask);
  // Any token but an end token. The position is unchanged on failure.
  Result<void> advance(Position& position, int32_t token);
  Result<void> advance_bytes(Position& position, std::string_view bytes);
  bool may_end(Position& position);
  bool must_end(Position& position);  // the text is complete and nothing can follow

  uint64_t cached_bytes() const;

 private:
  // What holds for a state that waits for a byte, whatever lies below its frame.
  struct StateMask {
    TokenMask allowed;
    std::vector<uint32_t> leaves;  // trie nodes at which the state's rule may be complete
  };
  void bring_here(Position& position);
  void forget_if_large();
  const StateMask& state_mask(StateId state);
  const TokenMask& full_mask(ConfigId id);
  void walk(ConfigId from, uint32_t begin, uint32_t end, TokenMask& allowed, std::vector<uint32_t>* leaves);

  const Automaton automaton_;
  const std::shared_ptr<const TokenTrie> trie_;
  mutable std::mutex mutex_;  // guards everything below, and every Configurations handed out
  std::shared_ptr<Configurations> configurations_;
  std::unordered_map<StateId, StateMask> states_;
  std::unordered_map<ConfigId, TokenMask> masks_;
  uint64_t mask_bytes_ = 0;
  std::vector<ConfigId> stack_;  // by depth, while walking
};

}  // namespace assay::grammar
