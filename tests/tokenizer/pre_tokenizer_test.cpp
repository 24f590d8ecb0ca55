#include "tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include "base/random.h"
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

}  // namespace
}  // namespace assay::tokenizer_internal
