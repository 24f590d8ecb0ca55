// Bytes that are no UTF-8: pieces are found as if each bad byte were U+FFFD, which is what llama.cpp does;
// but where llama.cpp goes on with U+FFFD, the bytes themselves are kept.
#include <gtest/gtest.h>

#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/recorded.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/toy_vocabulary.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocab_files.h"

namespace assay {
namespace {

using tokenizer_internal::decode_utf8;
using tokenizer_internal::Utf8Char;
using tokenizer_internal::Utf8Status;

// Each bad byte replaced; `origins` gets the offset in `text` of each byte, and of the end.
std::string replace_bad_bytes(std::string_view text, std::vector<size_t>& origins) {
  std::string replaced;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char character = decode_utf8(text, at);
    const bool valid = character.status == Utf8Status::kValid;
    const size_t length = valid ? character.length : 1;
    replaced += valid ? std::string(text.substr(at, length)) : "\uFFFD";
    origins.resize(replaced.size(), at);
    at += length;
  }
  origins.push_back(text.size());
  return replaced;
}

TEST(InvalidUtf8, is_split_as_if_replaced) {
  using namespace tokenizer_internal;
  for (const PreTokenizerRules& rules : all_pre_tokenizer_rules()) {
    const auto pre_tokenizer = PreTokenizer::create(rules.patterns);
    ASSERT_TRUE(pre_tokenizer);
    for (const std::string& text : tokenizer_test::recorded_invalid_strings().strings) {
      std::vector<size_t> origins, ends, replaced_ends;
      const std::string replaced = replace_bad_bytes(text, origins);
      pre_tokenizer->split(text, ends);
      pre_tokenizer->split(replaced, replaced_ends);
      for (size_t& end : replaced_ends) end = origins[end];
      EXPECT_EQ(ends, replaced_ends) << rules.names[0] << ": " << testing::PrintToString(text);
    }
  }
}

TEST(InvalidUtf8, bytes_are_kept_by_byte_level_bpe) {
  const auto tokenizer =
      Tokenizer::create(tokenizer_test::toy_byte_level_spec({"\u00E2 \u0124", "\u00FF a"}));
  ASSERT_TRUE(tokenizer);
  for (const std::string& text : tokenizer_test::recorded_invalid_strings().strings) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(InvalidUtf8, gpt2_agrees_with_llama_cpp_and_keeps_bytes) {
  const auto spec =
      tokenizer_test::read_gguf_vocabulary(tokenizer_test::shared_data() / "vocab/ggml-vocab-gpt-2.gguf");
  if (!spec) GTEST_SKIP() << spec.error().message();
  const auto tokenizer = Tokenizer::create(*spec);
  ASSERT_TRUE(tokenizer);
  const auto recorded = tokenizer_test::recorded_invalid_strings();
  ASSERT_EQ(recorded.strings.size() * 4, recorded.gpt2_hashes.size());
  for (size_t i = 0; i < recorded.strings.size(); ++i) {
    std::vector<size_t> origins;
    const auto ids =
        tokenizer->encode(replace_bad_bytes(recorded.strings[i], origins), {.parse_special = true});
    EXPECT_EQ(tokenizer_test::hash24(ids), recorded.gpt2_hashes.substr(i * 4, 4)) << i;
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(recorded.strings[i])), recorded.strings[i]);
  }
}

TEST(InvalidUtf8, bytes_are_kept_by_sentencepiece_with_byte_tokens) {
  const auto spec =
      tokenizer_test::read_gguf_vocabulary(tokenizer_test::shared_data() / "vocab/ggml-vocab-llama-spm.gguf");
  if (!spec) GTEST_SKIP() << spec.error().message();
  const auto tokenizer = Tokenizer::create(*spec);
  ASSERT_TRUE(tokenizer);
  for (const std::string& text : tokenizer_test::recorded_invalid_strings().strings) {
    if (text.find("\u2581") != std::string::npos) continue;  // comes back as a space
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

}  // namespace
}  // namespace assay
