// Texts made to be slow: a quadratic step anywhere would take hours on these megabytes, so that finishing is
// the test.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/recorded.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/toy_vocabulary.h"

namespace assay {
namespace {

using tokenizer_test::toy_byte_level_spec;

std::string repeat(std::string_view unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

// Merges a a, aa aa, ... up to 2^levels letters, as trained vocabularies have them.
VocabSpec doubling_spec(int levels) {
  VocabSpec spec = toy_byte_level_spec();
  std::string unit = "a";
  for (int level = 0; level < levels; ++level) {
    spec.merges.push_back(unit + " " + unit);
    unit += unit;
    spec.tokens.push_back(unit);
  }
  return spec;
}

TEST(HostileText, one_word_of_a_million_letters) {
  const auto tokenizer = Tokenizer::create(doubling_spec(10));
  ASSERT_TRUE(tokenizer);
  const std::vector<int32_t> ids = tokenizer->encode(std::string((1 << 20) + 5, 'a'));
  ASSERT_EQ(ids.size(), 1024u + 2);  // whole blocks of 1024, then 4 + 1
  EXPECT_EQ(tokenizer->token_bytes(ids[0]).size(), 1024u);
  EXPECT_EQ(tokenizer->token_bytes(ids[1024]).size(), 4u);
  EXPECT_EQ(tokenizer->token_bytes(ids[1025]).size(), 1u);
}

TEST(HostileText, long_runs_are_split_under_every_rule) {
  using namespace tokenizer_internal;
  const std::string runs[] = {
      "a",  "A",  "7",   " ", "\n", "\r", "\t", "'", "=", "\u3000", "\u0301", "\u54C8", "Aa\u0301 9 \n",
      "a ", " 1", "\xFF"};
  for (const PreTokenizerRules& rules : all_pre_tokenizer_rules()) {
    const auto pre_tokenizer = PreTokenizer::create(rules.patterns);
    ASSERT_TRUE(pre_tokenizer);
    for (const std::string_view unit : runs) {
      for (const std::string_view tail : {"", "x", "\n"}) {
        const std::string text = repeat(unit, 20'000) + std::string(tail);
        std::vector<size_t> ends;
        pre_tokenizer->split(text, ends);
        ASSERT_FALSE(ends.empty());
        EXPECT_EQ(ends.back(), text.size());
        EXPECT_TRUE(std::ranges::is_sorted(ends, std::less_equal<>())) << rules.names[0];
      }
    }
  }
}

// (a+)+b backtracks exponentially. The match gives up at its limit and the piece stays whole.
TEST(HostileText, exponential_patterns_give_up) {
  VocabSpec spec = toy_byte_level_spec();
  spec.pre_tokenizer.clear();
  spec.split_patterns = {"(a+)+b|(?:(?:[ab]|[ac])*)*d"};
  const auto tokenizer = Tokenizer::create(std::move(spec));
  ASSERT_TRUE(tokenizer);
  const std::string text(200, 'a');
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(HostileText, encode_runs_in_parallel) {
  const auto tokenizer = Tokenizer::create(doubling_spec(4));
  ASSERT_TRUE(tokenizer);
  const auto& strings = tokenizer_test::recorded_strings();
  std::vector<std::vector<int32_t>> expected;
  for (const std::string& text : strings) expected.push_back(tokenizer->encode(text));
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (size_t k = 0; k < strings.size(); ++k) EXPECT_EQ(tokenizer->encode(strings[k]), expected[k]);
    });
  }
}

}  // namespace
}  // namespace assay
