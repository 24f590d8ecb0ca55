#include "quality/text.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

TEST(BuiltInPrompts, are_many_distinct_and_varied) {
  const auto& prompts = built_in_prompts();
  EXPECT_GE(prompts.size(), 60U);
  std::set<std::string> ids, kinds;
  size_t longest = 0;
  for (const BuiltInPrompt& prompt : prompts) {
    ids.insert(prompt.id);
    kinds.insert(prompt.kind);
    longest = std::max(longest, prompt.prompt.size());
    EXPECT_FALSE(prompt.prompt.empty());
  }
  EXPECT_EQ(ids.size(), prompts.size());
  EXPECT_EQ(kinds, (std::set<std::string>{"chat", "text"}));
  EXPECT_GT(longest, 1500U);
}

TEST(QualityText, counts_and_hash_follow_the_tokens) {
  QualityText text{.name = "t",
                   .sequences = {{.tokens = {1, 2, 3, 4}, .n_prompt = 2, .first_scored = 1},
                                 {.tokens = {5, 6}, .n_prompt = 2, .first_scored = 1}}};
  EXPECT_EQ(text.n_tokens(), 6);
  EXPECT_EQ(text.n_scored(), 4);
  EXPECT_EQ(text.longest(), 4);
  const std::string hash = text.source().hash;
  text.sequences[1].tokens[1] = 7;
  EXPECT_NE(text.source().hash, hash);
  text.sequences[1].tokens[1] = 6;
  EXPECT_EQ(text.source().hash, hash);
  std::swap(text.sequences[0], text.sequences[1]);
  EXPECT_NE(text.source().hash, hash);
}

// Bytes 'a'..'z' as tokens, a BOS on request.
Tokenizer letters(bool add_bos) {
  VocabSpec spec;
  spec.kind = VocabKind::kByteLevelBpe;
  spec.pre_tokenizer = "gpt-2";
  for (char c = 'a'; c <= 'z'; ++c) spec.tokens.emplace_back(1, c);
  spec.tokens.emplace_back("<s>");
  spec.added.push_back({.id = 26, .text = "<s>", .special = true});
  spec.bos = 26;
  spec.add_bos = add_bos;
  auto tokenizer = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  return std::move(*tokenizer);
}

TEST(QualityText, windows_are_cut_as_llama_perplexity_cuts_them) {
  const auto text = make_windows(letters(false), "abcdefghijklmnopqrstuvw", "file", 8, 0);
  ASSERT_TRUE(text) << text.error().message();
  ASSERT_EQ(text->sequences.size(), 2U);  // 23 tokens: the last 7 are dropped
  EXPECT_EQ(text->sequences[1].tokens, (std::vector<int32_t>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(text->sequences[0].first_scored, 5);
  EXPECT_EQ(text->n_scored(), 2 * 3);
  EXPECT_EQ(make_windows(letters(false), "abcdefghijklmnopqrstuvw", "file", 8, 1)->sequences.size(), 1U);
}

TEST(QualityText, each_window_starts_with_bos_where_the_vocabulary_wants_it) {
  const auto text = make_windows(letters(true), "abcdefghijklmnopqrstuvw", "file", 8, 0);
  ASSERT_TRUE(text);
  ASSERT_EQ(text->sequences.size(), 3U);  // 24 tokens with BOS
  for (const QualitySequence& sequence : text->sequences) EXPECT_EQ(sequence.tokens[0], 26);
}

TEST(QualityText, text_shorter_than_a_window_is_refused) {
  const auto text = make_windows(letters(false), "abc", "short.txt", 8, 0);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message(), "short.txt: has 3 tokens, fewer than one window of 8");
}

}  // namespace
}  // namespace assay
