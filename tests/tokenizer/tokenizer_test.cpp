#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include "tokenizer/toy_vocabulary.h"
#include "tokenizer/vocab_files.h"

namespace assay {
namespace {

using tokenizer_test::add_special;
using tokenizer_test::toy_byte_level_spec;
using Ids = std::vector<int32_t>;

TEST(Tokenizer, merges_the_lowest_rank_first) {
  // "b c" outranks "a b", so "abc" is a|bc although reading from the left would give ab|c.
  const auto tokenizer = Tokenizer::create(toy_byte_level_spec({"b c", "a b"}));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(tokenizer->encode("abc"), (Ids{'a', 256}));
  EXPECT_EQ(tokenizer->encode("abab"), (Ids{257, 257}));
}

TEST(Tokenizer, special_text_is_ordinary_unless_asked_for) {
  VocabSpec spec = toy_byte_level_spec();
  const int32_t end = add_special(spec, "<|im_end|>");
  const auto tokenizer = Tokenizer::create(std::move(spec));
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->encode("a<|im_end|>b", {.parse_special = true}), (Ids{'a', end, 'b'}));
  EXPECT_EQ(tokenizer->encode("<|im_end|>").size(), 10u);
  EXPECT_EQ(tokenizer->decode(Ids{'a', end, 'b'}), "ab");
  EXPECT_EQ(tokenizer->decode(Ids{'a', end, 'b'}, false), "a<|im_end|>b");
}

TEST(Tokenizer, bos_is_added_exactly_once) {
  VocabSpec spec = toy_byte_level_spec();
  const int32_t bos = add_special(spec, "<s>");
  spec.bos = bos;
  spec.add_bos = true;
  const auto tokenizer = Tokenizer::create(std::move(spec));
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->encode("a"), (Ids{bos, 'a'}));
  EXPECT_EQ(tokenizer->encode(""), (Ids{bos}));
  EXPECT_EQ(tokenizer->encode("a", {.add_bos = false}), (Ids{'a'}));
  EXPECT_EQ(tokenizer->encode("<s>a", {.parse_special = true}), (Ids{bos, 'a'}));
  EXPECT_EQ(tokenizer->encode("<s>a", {.add_bos = false, .parse_special = true}), (Ids{bos, 'a'}));
}

// llama-tokenize -m SmolLM2-135M-Instruct.Q4_1.gguf --ids --no-bos -p "$text"
TEST(Tokenizer, smollm2_agrees_with_llama_cpp) {
  const auto spec = tokenizer_test::read_gguf_vocabulary(tokenizer_test::smollm2_path());
  if (!spec) GTEST_SKIP() << spec.error().message();
  const auto tokenizer = Tokenizer::create(*spec);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(tokenizer->encode("Hello world"), (Ids{19556, 905}));
  const std::string chat =
      "<|im_start|>user\nIt's 1234 na\u00EFve \u65E5\u672C\u8A9E \U0001F642\u200D\u2195\uFE0F  x<|im_end|>\n";
  const Ids ids = {1,     4093, 198, 1589, 506,   216, 33,  34,    35,  36,    15486, 46494, 17097, 241, 115,
                   40993, 179,  120, 248,  47526, 321, 231, 23227, 239, 31752, 216,   1792,  2,     198};
  EXPECT_EQ(tokenizer->encode(chat, {.add_bos = false, .parse_special = true}), ids);
  EXPECT_EQ(tokenizer->decode(ids, false), chat);
  StreamDecoder stream(*tokenizer, false);
  std::string text;
  for (const int32_t id : ids) text += stream.push(id);
  EXPECT_EQ(text + stream.finish(), chat);
}

}  // namespace
}  // namespace assay
