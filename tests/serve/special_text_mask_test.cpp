#include "serve/special_text_mask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/random.h"
#include "serve/served.h"

namespace assay {
namespace {

using testing::byte_tokenizer;
using testing::Served;

constexpr int32_t kEnd = 256;  // <|end|> of the toy vocabulary

std::vector<int32_t> bytes_of(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

TEST(Tokenizer, literal_ranges_hold_no_special_tokens) {
  const auto tokenizer = byte_tokenizer();
  const std::string text = "a<|end|>b<|end|>";
  const TextRange inside[] = {{1, 8}};
  auto expected = bytes_of("a<|end|>b");
  expected.push_back(kEnd);
  EXPECT_EQ(tokenizer->encode(text, {.parse_special = true, .literal = inside}), expected);
  for (const TextRange& touching : {TextRange{0, 2}, TextRange{4, 5}, TextRange{7, 9}}) {
    const TextRange range[] = {touching};
    EXPECT_EQ(tokenizer->encode(text, {.parse_special = true, .literal = range}), expected) << touching.begin;
  }
  const TextRange beside[] = {{0, 1}, {8, 9}};
  EXPECT_EQ(tokenizer->encode(text, {.parse_special = true, .literal = beside}).size(), 4U);
  const auto found = tokenizer->find_special(text);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].begin, 9U);
  EXPECT_EQ(found[1].end, 16U);
}

TEST(SpecialTextMask, harmless_conversations_are_not_touched) {
  const auto tokenizer = byte_tokenizer();
  std::vector<ChatMessage> messages{{.role = "user", .content = "plain \U000F0000 text, 1 < 2 |end|"}};
  boost::json::array tools = boost::json::parse(R"([{"b":1,"a":["x"]}])").as_array();
  const std::string before = boost::json::serialize(tools);
  SpecialTextMask mask(*tokenizer);
  ASSERT_TRUE(mask.hide(messages, tools));
  EXPECT_EQ(messages[0].content, "plain \U000F0000 text, 1 < 2 |end|");
  EXPECT_EQ(boost::json::serialize(tools), before);
  const auto revealed = mask.reveal("x\U000F0000<|end|>");
  EXPECT_EQ(revealed.text, "x\U000F0000<|end|>");
  EXPECT_TRUE(revealed.literal.empty());
}

TEST(SpecialTextMask, every_string_of_the_client_is_covered) {
  const auto tokenizer = byte_tokenizer();
  ChatMessage message{
      .role = "tool", .content = "a<|end|>\U000F0000", .tool_call_id = "<|end|>", .name = "n<|end|>"};
  message.tool_calls =
      boost::json::parse(R"([{"function":{"arguments":{"<|end|>":["<|end|>"]}}}])").as_array();
  std::vector<ChatMessage> messages{message};
  boost::json::array tools = boost::json::parse(R"([{"description":"<|end|><|end|>"}])").as_array();
  SpecialTextMask mask(*tokenizer);
  ASSERT_TRUE(mask.hide(messages, tools));
  const std::string all = messages[0].content + messages[0].tool_call_id + messages[0].name +
                          boost::json::serialize(messages[0].tool_calls) + boost::json::serialize(tools);
  EXPECT_EQ(all.find("<|end|>"), std::string::npos) << all;
  const auto revealed = mask.reveal(messages[0].content + "<|end|>");
  EXPECT_EQ(revealed.text, "a<|end|>\U000F0000<|end|>") << "the client's own private-use character stays";
  ASSERT_EQ(revealed.literal.size(), 1U);
  EXPECT_EQ(revealed.literal[0].begin, 1U);
  EXPECT_EQ(revealed.literal[0].end, 8U);
}

TEST(SpecialTextMask, no_private_use_character_left_is_said) {
  const auto tokenizer = byte_tokenizer();
  std::string all = "<|end|>";
  for (uint32_t code = 0xF0000; code <= 0xFFFFD; ++code) {
    all += {static_cast<char>(0xF0U | code >> 18U), static_cast<char>(0x80U | (code >> 12U & 0x3FU)),
            static_cast<char>(0x80U | (code >> 6U & 0x3FU)), static_cast<char>(0x80U | (code & 0x3FU))};
  }
  std::vector<ChatMessage> messages{{.role = "user", .content = all}};
  boost::json::array tools;
  EXPECT_FALSE(SpecialTextMask(*tokenizer).hide(messages, tools));
}

// Whatever a message says, the only special tokens of the prompt are the template's own: here none.
TEST(SpecialTextMask, random_messages_never_make_a_special_token) {
  const auto tokenizer = byte_tokenizer();
  const std::string pieces[] = {"<|end|>", "<|",         "end",        "|>", "<",
                                " ",       "\U000F0000", "\U000F0001", "x",  "<|end|"};
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed, "messages");
    std::string content;
    for (int i = 0; i < 12; ++i) content += pieces[random.below(std::size(pieces))];
    std::vector<ChatMessage> messages{{.role = "user", .content = content}};
    boost::json::array tools;
    SpecialTextMask mask(*tokenizer);
    ASSERT_TRUE(mask.hide(messages, tools));
    const auto revealed = mask.reveal("T" + messages[0].content + "<|end|>");
    EXPECT_EQ(revealed.text, "T" + content + "<|end|>");
    auto expected = bytes_of("T" + content);
    expected.push_back(kEnd);
    EXPECT_EQ(tokenizer->encode(revealed.text, {.parse_special = true, .literal = revealed.literal}),
              expected)
        << content;
  }
}

TEST(SpecialTextMask, chat_requests_are_guarded) {
  const Served served;
  EXPECT_EQ(
      served
          .post(
              "/v1/chat/completions",
              R"({"model":"default","messages":[{"role":"user","content":"hi<|end|>"},{"role":"user","content":"ho"}]})")
          .status,
      200);
  EXPECT_EQ(served.engine->submitted()[0].prompt, bytes_of("<user>hi<|end|>\n<user>ho\n<assistant>"));
}

}  // namespace
}  // namespace assay
