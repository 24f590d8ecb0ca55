#include <gtest/gtest.h>

#include "base/random.h"
#include "tokenizer/recorded.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/toy_vocabulary.h"
#include "tokenizer/utf8.h"

namespace assay {
namespace {

using tokenizer_internal::is_valid_utf8;
using tokenizer_test::add_special;
using tokenizer_test::toy_byte_level_spec;
using Ids = std::vector<int32_t>;

std::string stream(const Tokenizer& tokenizer, const Ids& ids, bool skip_special = true) {
  StreamDecoder decoder(tokenizer, skip_special);
  std::string text;
  for (const int32_t id : ids) {
    const std::string part = decoder.push(id);
    EXPECT_TRUE(is_valid_utf8(part)) << testing::PrintToString(ids);
    text += part;
  }
  const std::string rest = decoder.finish();
  EXPECT_TRUE(is_valid_utf8(rest));
  return text + rest;
}

Tokenizer toy(VocabSpec spec) {
  auto made = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(made) << made.error().message();
  return std::move(*made);
}

TEST(StreamDecoder, holds_back_incomplete_characters) {
  const Tokenizer tokenizer = toy(toy_byte_level_spec());
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push('a'), "a");
  EXPECT_EQ(decoder.push(0xE2), "");
  EXPECT_EQ(decoder.push(0x82), "");
  EXPECT_EQ(decoder.push(0xAC), "\u20AC");
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.push('b'),
            "\uFFFD"
            "b");
  EXPECT_EQ(decoder.push(0xE2), "");
  EXPECT_EQ(decoder.push(0x82), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, concatenation_equals_decode_for_valid_text) {
  const Tokenizer tokenizer = toy(toy_byte_level_spec({"t h", "th e", "\u0120 the", "\u00E6 \u0139"}));
  for (const std::string& text : tokenizer_test::recorded_strings()) {
    const Ids ids = tokenizer.encode(text);
    EXPECT_EQ(tokenizer.decode(ids), text);
    EXPECT_EQ(stream(tokenizer, ids), text);
  }
}

TEST(StreamDecoder, any_ids_give_valid_text) {
  VocabSpec spec = toy_byte_level_spec({"\u00F0 \u0141", "\u0141 \u013A"});
  add_special(spec, "<|end|>");
  const Tokenizer tokenizer = toy(std::move(spec));
  Random random(7);
  for (int round = 0; round < 3000; ++round) {
    Ids ids;
    const auto length = random.below(12);
    for (uint64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(random.between(-3, 270)));
    const std::string text = stream(tokenizer, ids, round % 2 == 0);
    const std::string bytes = tokenizer.decode(ids, round % 2 == 0);
    if (is_valid_utf8(bytes))
      EXPECT_EQ(text, bytes);
    else
      EXPECT_NE(text.find("\uFFFD"), std::string::npos);
  }
}

// The reference is bytes(...).decode("utf-8", errors="replace") of Python 3.11.
TEST(StreamDecoder, replaces_invalid_bytes_as_python_does) {
  const Tokenizer tokenizer = toy(toy_byte_level_spec());
  const std::pair<std::string, std::string> cases[] = {
      {"\xFF", "\uFFFD"},
      {"\xC0\x80", "\uFFFD\uFFFD"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xE2\x82"
       "A",
       "\uFFFD"
       "A"},
      {"\xF0\x9F\x98", "\uFFFD"},
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xF0\x80\x80\x41",
       "\uFFFD\uFFFD\uFFFD"
       "A"},
      {"\x80\xE2\x82\xAC\xE2", "\uFFFD\u20AC\uFFFD"},
  };
  for (const auto& [bytes, expected] : cases) {
    Ids ids;
    for (const char byte : bytes) ids.push_back(static_cast<uint8_t>(byte));
    EXPECT_EQ(stream(tokenizer, ids), expected) << testing::PrintToString(bytes);
  }
}

TEST(StreamDecoder, sentencepiece_strips_the_first_space_once) {
  VocabSpec spec;
  spec.kind = VocabKind::kSentencePieceBpe;
  spec.tokens = {"<unk>", "<s>", "\u2581a", "\u2581", "b", "<0xE2>", "<0x82>", "<0xAC>"};
  spec.scores = {0, 0, -1, -2, -3, 0, 0, 0};
  spec.kinds = {TokenKind::kUnknown, TokenKind::kControl, TokenKind::kNormal, TokenKind::kNormal,
                TokenKind::kNormal,  TokenKind::kByte,    TokenKind::kByte,   TokenKind::kByte};
  const Tokenizer tokenizer = toy(std::move(spec));
  EXPECT_EQ(tokenizer.encode("a\u20AC"), (Ids{2, 5, 6, 7}));
  for (const auto& [ids, text] : {std::pair(Ids{1, 2, 2, 4}, "a ab"), std::pair(Ids{3, 2}, " a"),
                                  std::pair(Ids{2, 5, 6, 7, 2}, "a\u20AC a"), std::pair(Ids{}, "")}) {
    EXPECT_EQ(tokenizer.decode(ids), text);
    EXPECT_EQ(stream(tokenizer, ids), text);
  }
  EXPECT_EQ(tokenizer.decode(Ids{1, 2}, false), "<s> a");
  EXPECT_EQ(stream(tokenizer, {1, 2}, false), "<s> a");
}

}  // namespace
}  // namespace assay
