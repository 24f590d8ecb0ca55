#include "grammar/token_grammar.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "grammar/sampling.h"

namespace assay::grammar {
namespace {

using testing::allowed;
using testing::grammar_of;
using testing::grammar_of_schema;
using testing::mask_at;

const char* const kSchemas[] = {
    R"({"type":"object","properties":{"name":{"type":"string"},"n":{"type":"integer"},"e":{"enum":["a","abc",1]}},
        "required":["name"]})",
    R"({"type":"array","items":{"type":"string","minLength":2,"maxLength":5},"minItems":1,"maxItems":4})",
    R"({"type":"string","pattern":"^(?:é|ab)+[0-9]{1,3}$"})",
    R"({"anyOf":[{"type":"object","properties":{"name":{"type":"number"}},"required":["name"],
        "additionalProperties":{"type":"boolean"}},{"type":"array"},{"type":"string"}]})",
    R"({"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"v":{"type":"number","minimum":-1.5,"maximum":12},
        "next":{"anyOf":[{"$ref":"#/$defs/t"},{"type":"null"}]}},"required":["v","next"]}}})",
    R"({"type":"string","maxLength":40})",
};

// The definition of a mask: a token is allowed exactly when the automaton can read its bytes.
void expect_mask_is_exact(TokenGrammar& grammar, TokenGrammar::Position& position,
                          const std::string& so_far) {
  const TokenMask mask = mask_at(grammar, position);
  for (int32_t id = 0; id < grammar.trie().n_tokens(); ++id) {
    bool follows = false;
    if (grammar.trie().is_end(id)) {
      follows = grammar.may_end(position);
    } else {
      auto copy = position;
      follows = grammar.advance(copy, id).has_value();
    }
    ASSERT_EQ(allowed(mask, id), follows)
        << "token " << id << " '" << grammar.trie().text(id) << "' after " << so_far;
  }
}

TEST(TokenGrammar, masks_are_what_the_automaton_can_read) {
  for (const char* schema : kSchemas) {
    const auto grammar = grammar_of_schema(schema);
    for (uint64_t seed = 0; seed < 12; ++seed) {
      Random random(seed, schema);
      auto position = grammar->start();
      std::string text;
      for (int step = 0; step < 40; ++step) {
        expect_mask_is_exact(*grammar, position, text);
        if (HasFatalFailure()) return;
        const TokenMask mask = mask_at(*grammar, position);
        std::vector<int32_t> choices;
        for (int32_t id = 0; id < grammar->trie().n_tokens(); ++id)
          if (allowed(mask, id) && !grammar->trie().is_end(id)) choices.push_back(id);
        if (choices.empty()) break;
        const int32_t chosen = choices[random.below(choices.size())];
        text += grammar->trie().text(chosen);
        ASSERT_TRUE(grammar->advance(position, chosen));
      }
    }
  }
}

// Every document can be finished from wherever the masks lead.
TEST(TokenGrammar, sampled_documents_end_and_are_json) {
  for (const char* schema : kSchemas) {
    const auto grammar = grammar_of_schema(schema);
    for (uint64_t seed = 0; seed < 60; ++seed) {
      Random random(seed, schema);
      const auto text = testing::sample(*grammar, random, 30);
      ASSERT_TRUE(text.has_value()) << schema;
      boost::json::error_code error;
      boost::json::parse(*text, error, {}, {.max_depth = kMaxDepth});
      ASSERT_FALSE(error) << error.message() << ": " << *text;
    }
  }
}

TEST(TokenGrammar, a_token_that_does_not_follow_leaves_the_position) {
  const auto grammar = grammar_of_schema(R"({"type":"boolean"})");
  auto position = grammar->start();
  EXPECT_FALSE(grammar->advance(position, 'x'));
  EXPECT_FALSE(grammar->advance(position, -1));
  EXPECT_FALSE(grammar->advance(position, grammar->trie().n_tokens()));
  EXPECT_FALSE(grammar->advance(position, grammar->trie().n_tokens() - 1));  // the end token
  EXPECT_FALSE(grammar->advance_bytes(position, "trux"));
  EXPECT_TRUE(grammar->advance_bytes(position, "true"));
  EXPECT_TRUE(grammar->may_end(position));
  EXPECT_TRUE(grammar->must_end(position));
}

TEST(TokenGrammar, an_open_number_may_end_but_need_not) {
  const auto grammar = grammar_of_schema(R"({"type":"integer"})");
  auto position = grammar->start();
  EXPECT_FALSE(grammar->may_end(position));
  ASSERT_TRUE(grammar->advance_bytes(position, "12"));
  EXPECT_TRUE(grammar->may_end(position));
  EXPECT_FALSE(grammar->must_end(position));
}

// More distinct stacks than the cache holds: what is kept stays bounded, and positions survive being moved.
TEST(TokenGrammar, memory_is_bounded_and_old_positions_stay_valid) {
  AutomatonBuilder builder;
  JsonRules rules(builder);
  const auto grammar = grammar_of(builder.build(rules.string_of_length(0, 4'000'000)));
  auto old = grammar->start();
  ASSERT_TRUE(grammar->advance_bytes(old, "\"ab"));
  auto position = grammar->start();
  ASSERT_TRUE(grammar->advance_bytes(position, "\""));
  for (int i = 0; i < 1500; ++i) {
    ASSERT_TRUE(grammar->advance_bytes(position, std::string(1000, 'x')));
    ASSERT_LT(grammar->cached_bytes(), TokenGrammar::kCacheBytes + (1U << 21));
    if (i % 100 == 0) mask_at(*grammar, position);
  }
  expect_mask_is_exact(*grammar, old, "\"ab");
  EXPECT_TRUE(grammar->advance_bytes(old, "\""));
  EXPECT_TRUE(grammar->must_end(old));
}

TEST(TokenTrie, every_token_is_found_by_its_bytes) {
  const auto trie = testing::awkward_vocabulary();
  std::vector<int> seen(static_cast<size_t>(trie->n_tokens()));
  std::string path;
  for (uint32_t i = 0; i < trie->n_nodes(); ++i) {
    const TokenTrie::Node& node = trie->node(i);
    ASSERT_GT(node.end, i);
    path.resize(node.depth - 1U);
    path += static_cast<char>(node.byte);
    for (const int32_t id : trie->tokens(i)) {
      EXPECT_EQ(trie->text(id), path);
      ++seen[static_cast<size_t>(id)];
    }
  }
  for (int32_t id = 0; id < trie->n_tokens(); ++id)
    EXPECT_EQ(seen[static_cast<size_t>(id)], trie->text(id).empty() ? 0 : 1) << id;
}

}  // namespace
}  // namespace assay::grammar
