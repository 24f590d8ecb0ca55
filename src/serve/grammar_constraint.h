// Grammars as constraints on an engine's sequences.
//
// GrammarStore compiles grammars for one tokenizer and keeps the latest, with their masks, for the next
// request that asks for the same. Thread safety: any thread. Failure: as the grammar's compilation;
// kUnavailable when the grammars in use hold more than kMaxBytes. Cost: the first use sorts the vocabulary
// (tens of milliseconds).
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/token_constraint.h"
#include "grammar/token_grammar.h"
#include "tokenizer/tokenizer.h"

namespace assay {

class GrammarStore {
 public:
  static constexpr size_t kKept = 32;                         // grammars that no request uses
  static constexpr uint64_t kMaxBytes = uint64_t{512} << 20;  // of all, kept or in use

  // Borrows the tokenizer.
  explicit GrammarStore(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // The grammar that `compile` makes; `key` stands for it.
  Result<std::shared_ptr<grammar::TokenGrammar>> get(
      std::string_view key, const std::function<Result<grammar::Automaton>()>& compile);

 private:
  struct Kept {
    std::string key;
    std::shared_ptr<grammar::TokenGrammar> grammar;
  };
  std::shared_ptr<grammar::TokenGrammar> find(std::string_view key);
  Result<void> make_room();
  uint64_t bytes_in_use();

  const Tokenizer& tokenizer_;
  std::mutex mutex_;
  std::once_flag trie_made_;
  std::shared_ptr<const grammar::TokenTrie> trie_;
  std::list<Kept> kept_;  // latest first
  std::vector<std::weak_ptr<grammar::TokenGrammar>> made_;
};

// The bytes that each token writes for a grammar: special tokens write none.
std::shared_ptr<const grammar::TokenTrie> make_token_trie(const Tokenizer& tokenizer);

// A sequence that follows a grammar from its first token on, or, with a `trigger`, from behind the first time
// that the trigger appears in its text.
std::unique_ptr<TokenConstraint> make_grammar_constraint(std::shared_ptr<grammar::TokenGrammar> grammar,
                                                         std::string trigger = {});

}  // namespace assay
