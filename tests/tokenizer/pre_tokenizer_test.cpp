#include "tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <set>

#include "tokenizer/recorded.h"
#include "tokenizer/utf8.h"

namespace assay::tokenizer_internal {
namespace {

using tokenizer_test::hash24;
using tokenizer_test::recorded_strings;

std::vector<size_t> split(const PreTokenizer& pre_tokenizer, std::string_view text) {
  std::vector<size_t> ends;
  pre_tokenizer.split(text, ends);
  return ends;
}

// Byte offsets as counts of characters.
std::vector<int32_t> in_characters(std::string_view text, const std::vector<size_t>& ends) {
  std::vector<int32_t> counts;
  int32_t characters = 0;
  size_t at = 0;
  for (const size_t end : ends) {
    for (; at < end; at += decode_utf8(text, at).length) ++characters;
    counts.push_back(characters);
  }
  return counts;
}

PreTokenizer make(std::string_view name) {
  const auto rules = find_pre_tokenizer_rules(name);
  EXPECT_TRUE(rules) << rules.error().message();
  auto made = PreTokenizer::create((*rules)->patterns);
  EXPECT_TRUE(made) << made.error().message();
  return std::move(*made);
}

TEST(PreTokenizer, splits_as_hf_tokenizers_does) {
  const auto references = tokenizer_test::recorded_references("splits.json");
  ASSERT_EQ(references.size(), 31u);
  for (const auto& [name, reference] : references) {
    const PreTokenizer pre_tokenizer = make(name);
    int wrong = 0;
    ASSERT_EQ(reference.hashes.size(), recorded_strings().size() * 4);
    for (size_t i = 0; i < recorded_strings().size(); ++i) {
      const std::string& text = recorded_strings()[i];
      const std::vector<int32_t> ends = in_characters(text, split(pre_tokenizer, text));
      if (hash24(ends) == reference.hashes.substr(i * 4, 4)) continue;
      if (++wrong <= 5)
        ADD_FAILURE() << name << ", string " << i << " '" << text << "': " << testing::PrintToString(ends);
    }
    EXPECT_EQ(wrong, 0) << name;
  }
}

TEST(PreTokenizer, names_are_distinct_and_known) {
  std::set<std::string_view> names;
  for (const PreTokenizerRules& rules : all_pre_tokenizer_rules()) {
    for (const std::string_view name : rules.names) {
      EXPECT_TRUE(names.insert(name).second) << name;
      EXPECT_EQ(*find_pre_tokenizer_rules(name), &rules);
    }
  }
  // Every name that llama.cpp's llama-vocab.cpp compares tokenizer_pre with (late 2026).
  EXPECT_EQ(names.size(), 89u);
}

TEST(PreTokenizer, unknown_name_lists_the_known_ones) {
  const auto rules = find_pre_tokenizer_rules("gpt-9");
  ASSERT_FALSE(rules);
  EXPECT_EQ(rules.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(rules.error().what.find("llama-bpe, llama-v3, llama3"), std::string::npos) << rules.error().what;
  EXPECT_NE(rules.error().what.find("'gpt-9'"), std::string::npos);
}

TEST(PreTokenizer, groups_digits_from_the_right) {
  const std::vector<std::string> groups = {std::string(kDigitGroups)};
  const auto pre_tokenizer = PreTokenizer::create(groups);
  ASSERT_TRUE(pre_tokenizer);
  EXPECT_EQ(split(*pre_tokenizer, "1234567"), (std::vector<size_t>{1, 4, 7}));
  EXPECT_EQ(split(*pre_tokenizer, "x123 45"), (std::vector<size_t>{1, 4, 5, 7}));
  EXPECT_EQ(split(*pre_tokenizer, "1234a"), (std::vector<size_t>{5}));  // a word goes on: not a number
  EXPECT_EQ(split(*pre_tokenizer, ""), std::vector<size_t>{});
}

TEST(PreTokenizer, inner_sets_are_flattened) {
  const std::vector<std::string> pattern = {"[^a[bc]]+"};
  const auto pre_tokenizer = PreTokenizer::create(pattern);
  ASSERT_TRUE(pre_tokenizer);
  EXPECT_EQ(split(*pre_tokenizer, "xaybzc]"), (std::vector<size_t>{1, 2, 3, 4, 5, 6, 7}));
}

}  // namespace
}  // namespace assay::tokenizer_internal
