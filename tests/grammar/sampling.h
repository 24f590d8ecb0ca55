// What the tests of grammars share: a vocabulary of all bytes and some longer texts, acceptance of whole
// texts, and random documents drawn token by token.
#pragma once

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "grammar/json_schema.h"
#include "grammar/token_grammar.h"

namespace assay::grammar::testing {

// Ids 0..255 are the bytes, then texts that cut JSON and UTF-8 in awkward places, then two that write nothing
// and the end token, the last.
inline std::shared_ptr<const TokenTrie> awkward_vocabulary() {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  for (const char* text :
       {"\":",      "\": ",   "\",",         "\", \"",   "\"}",       "{\"",          "[{",
        "}]",       "}}",     "]]",          "[[",       "{}",        "[]",           "{ ",
        "\n ",      "\n  ",   "  ",          "true",     "false",     "null",         "tru",
        "nul",      "12",     "123",         "-1",       "0.",        ".5",           "e+",
        "1e",       "00",     "the",         " the",     "ab",        "abc",          "\\\"",
        "\\n",      "\\u",    "\\u00",       "\\ud83d",  "\\ude00",   "d83d",         "\xC3",
        "\xC3\xA9", "\xA9\"", "\xE2\x82",    "\x82\xAC", "\xF0\x9F",  "\x98\x80",     "\xF0\x9F\x98\x80",
        "e\"",      "a\",",   "name",        "\"name\"", "\"name\":", "x\": 1",       "1,",
        "1}",       "1]",     ", ",          ",\"",      ",\n",       "\xED\xA0\x80", "\xC0\x80",
        "\xFF\xFE", "the",    "a b c d e f", "\"\"",     "\"\",",     "2024-",        "-01",
        ":",        "T0",     "9999999999"})
    texts.emplace_back(text);
  texts.emplace_back();
  texts.emplace_back();
  texts.emplace_back("<end>");
  const auto end = static_cast<int32_t>(texts.size() - 1);
  return std::make_shared<const TokenTrie>(texts, std::vector<int32_t>{end});
}

inline bool allowed(const TokenMask& mask, int32_t id) {
  return (mask[static_cast<size_t>(id) / 64] >> (static_cast<size_t>(id) % 64) & 1U) != 0;
}

inline TokenMask mask_at(TokenGrammar& grammar, TokenGrammar::Position& position) {
  TokenMask mask(grammar.trie().n_mask_words());
  const auto done = grammar.mask(position, mask);
  EXPECT_TRUE(done.has_value()) << done.error().message();
  return mask;
}

inline bool accepts(TokenGrammar& grammar, std::string_view text) {
  auto position = grammar.start();
  return grammar.advance_bytes(position, text) && grammar.may_end(position);
}

inline std::unique_ptr<TokenGrammar> grammar_of(Result<Automaton> automaton) {
  if (!automaton) {
    ADD_FAILURE() << automaton.error().message();
    return nullptr;
  }
  return std::make_unique<TokenGrammar>(std::move(*automaton), awkward_vocabulary());
}

inline std::unique_ptr<TokenGrammar> grammar_of_schema(std::string_view schema) {
  return grammar_of(compile_json_schema(boost::json::parse(schema)));
}

// A document drawn from the masks; after `n_free` tokens it hurries to its end. Nothing when it takes too
// long, which is a failure.
inline std::optional<std::string> sample(TokenGrammar& grammar, Random& random, int n_free) {
  auto position = grammar.start();
  std::string text;
  for (int step = 0; step < n_free + 4000; ++step) {
    const TokenMask mask = mask_at(grammar, position);
    std::vector<int32_t> choices;
    for (int32_t id = 0; id < grammar.trie().n_tokens(); ++id)
      if (allowed(mask, id)) choices.push_back(id);
    if (choices.empty()) {
      ADD_FAILURE() << "nothing may follow: " << text;
      return std::nullopt;
    }
    int32_t chosen = choices[random.below(choices.size())];
    if (step > n_free) {
      for (const int32_t id : {grammar.trie().n_tokens() - 1, int32_t{'"'}, int32_t{'}'}, int32_t{']'}})
        if (allowed(mask, id)) {
          chosen = id;
          break;
        }
    }
    if (grammar.trie().is_end(chosen)) return text;
    text += grammar.trie().text(chosen);
    const auto advanced = grammar.advance(position, chosen);
    if (!advanced) {
      ADD_FAILURE() << advanced.error().message() << " after " << text;
      return std::nullopt;
    }
  }
  ADD_FAILURE() << "no end: " << text.substr(0, 400);
  return std::nullopt;
}

}  // namespace assay::grammar::testing
