#include "serve/grammar_constraint.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace assay {
namespace {

class GrammarConstraint final : public TokenConstraint {
 public:
  GrammarConstraint(std::shared_ptr<grammar::TokenGrammar> grammar, std::string trigger)
      : grammar_(std::move(grammar)),
        trigger_(std::move(trigger)),
        position_(grammar_->start()),
        mask_(grammar_->trie().n_mask_words()),
        active_(trigger_.empty()) {}

  Result<void> mask(std::span<float> logits) override {
    if (!active_) return {};
    RETURN_IF_ERROR(grammar_->mask(position_, mask_));
    if (std::ranges::all_of(mask_, [](uint64_t word) { return word == 0; }))
      return fail(ErrorCode::kUnsupported, "grammar", "no token of the vocabulary can continue the document");
    constexpr float kForbidden = -std::numeric_limits<float>::infinity();
    const size_t n_known = std::min(logits.size(), mask_.size() * 64);
    for (size_t begin = 0; begin < n_known; begin += 64) {
      const uint64_t word = mask_[begin / 64];
      if (word == ~uint64_t{0}) continue;
      const size_t n = std::min<size_t>(64, n_known - begin);
      if (word == 0) {
        std::fill_n(logits.begin() + static_cast<ptrdiff_t>(begin), n, kForbidden);
        continue;
      }
      for (size_t i = 0; i < n; ++i)
        if ((word >> i & 1U) == 0) logits[begin + i] = kForbidden;
    }
    std::fill(logits.begin() + static_cast<ptrdiff_t>(n_known), logits.end(), kForbidden);
    return {};
  }

  Result<void> accept(int32_t token) override {
    if (active_) return grammar_->advance(position_, token);
    // Free text, of which only as much is kept as the trigger is long.
    if (token < 0 || token >= grammar_->trie().n_tokens()) return {};
    text_ += grammar_->trie().text(token);
    if (const size_t found = text_.find(trigger_); found != std::string::npos) {
      const std::string rest = text_.substr(found + trigger_.size());
      // A token that goes on past the trigger in a way that the grammar forbids: not a call after all.
      active_ = grammar_->advance_bytes(position_, rest).has_value();
      text_ = active_ ? std::string() : rest;
    } else if (text_.size() >= trigger_.size()) {
      text_.erase(0, text_.size() - trigger_.size() + 1);
    }
    return {};
  }

  bool complete() override { return active_ && grammar_->must_end(position_); }

 private:
  const std::shared_ptr<grammar::TokenGrammar> grammar_;
  const std::string trigger_;
  grammar::TokenGrammar::Position position_;
  grammar::TokenMask mask_;
  bool active_;
  std::string text_;
};

}  // namespace

std::shared_ptr<const grammar::TokenTrie> make_token_trie(const Tokenizer& tokenizer) {
  std::vector<std::string> texts(static_cast<size_t>(tokenizer.vocab_size()));
  std::vector<int32_t> ends;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_end_of_generation(id)) {
      ends.push_back(id);
    } else if (!tokenizer.is_special(id)) {
      texts[static_cast<size_t>(id)] = tokenizer.token_bytes(id);
    }
  }
  return std::make_shared<const grammar::TokenTrie>(texts, std::move(ends));
}

uint64_t GrammarStore::bytes_in_use() {
  std::erase_if(made_, [](const auto& grammar) { return grammar.expired(); });
  uint64_t bytes = 0;
  for (const auto& weak : made_)
    if (const auto grammar = weak.lock()) bytes += grammar->automaton().bytes() + grammar->cached_bytes();
  return bytes;
}

std::shared_ptr<grammar::TokenGrammar> GrammarStore::find(std::string_view key) {
  const auto known = std::ranges::find(kept_, key, &Kept::key);
  if (known == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, known);
  return kept_.front().grammar;
}

// Lets go of what is kept, as far as the memory of all demands it.
Result<void> GrammarStore::make_room() {
  uint64_t bytes = bytes_in_use();
  while (bytes > kMaxBytes / 2 && !kept_.empty()) {
    kept_.pop_back();
    bytes = bytes_in_use();
  }
  if (bytes <= kMaxBytes) return {};
  return fail(ErrorCode::kUnavailable, "grammar", "the grammars in use hold {} bytes", bytes);
}

Result<std::shared_ptr<grammar::TokenGrammar>> GrammarStore::get(
    std::string_view key, const std::function<Result<grammar::Automaton>()>& compile) {
  {
    const std::scoped_lock lock(mutex_);
    if (auto known = find(key)) return known;
    RETURN_IF_ERROR(make_room());
  }
  // Not under the lock: others may look up what is kept meanwhile.
  ASSIGN_OR_RETURN(grammar::Automaton automaton, compile());
  std::call_once(trie_made_, [&] { trie_ = make_token_trie(tokenizer_); });
  auto made = std::make_shared<grammar::TokenGrammar>(std::move(automaton), trie_);
  const std::scoped_lock lock(mutex_);
  if (auto known = find(key)) return known;  // another thread was faster
  made_.push_back(made);
  kept_.push_front({std::string(key), made});
  if (kept_.size() > kKept) kept_.pop_back();
  return made;
}

std::unique_ptr<TokenConstraint> make_grammar_constraint(std::shared_ptr<grammar::TokenGrammar> grammar,
                                                         std::string trigger) {
  return std::make_unique<GrammarConstraint>(std::move(grammar), std::move(trigger));
}

}  // namespace assay
