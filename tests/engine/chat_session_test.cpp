#include "engine/chat_session.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// One token per byte of "role:content;".
Result<std::vector<int32_t>> encode_plainly(const std::vector<ChatMessage>& messages) {
  std::vector<int32_t> ids;
  for (const ChatMessage& message : messages)
    for (const char byte : message.role + ":" + message.content + ";") ids.push_back(byte);
  return ids;
}

std::string text_of(const std::vector<int32_t>& ids) {
  return {ids.begin(), ids.end()};
}

TEST(ChatSession, turns_build_on_each_other) {
  ChatSession session(encode_plainly, 1000, "be kind");
  EXPECT_EQ(text_of(session.ask("hi")->prompt), "system:be kind;user:hi;");
  session.answer("hello");
  EXPECT_EQ(text_of(session.ask("bye")->prompt), "system:be kind;user:hi;assistant:hello;user:bye;");
  session.withdraw();
  EXPECT_EQ(text_of(session.ask("so?")->prompt), "system:be kind;user:hi;assistant:hello;user:so?;");
  session.answer("yes");
  session.reset();
  session.set_system("");
  EXPECT_EQ(text_of(session.ask("new")->prompt), "user:new;");
}

TEST(ChatSession, oldest_exchanges_make_room_and_the_system_message_stays) {
  ChatSession session(encode_plainly, 40, "s");  // "system:s;" 9, each "user:x;" 7, each "assistant:y;" 12
  ASSERT_TRUE(session.ask("1").has_value());
  session.answer("a");
  const auto second = session.ask("2");
  EXPECT_EQ(second->n_forgotten, 0);
  EXPECT_EQ(second->prompt.size(), 35U);
  session.answer("b");
  const auto third = session.ask("3");
  EXPECT_EQ(third->n_forgotten, 2);
  EXPECT_EQ(text_of(third->prompt), "system:s;user:2;assistant:b;user:3;");
}

TEST(ChatSession, question_that_cannot_fit_changes_nothing) {
  ChatSession session(encode_plainly, 40);
  ASSERT_TRUE(session.ask("1").has_value());
  session.answer("a");
  const auto refused = session.ask(std::string(50, 'x'));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(session.messages().size(), 2U);
}

TEST(ChatSession, template_that_refuses_changes_nothing) {
  ChatSession session(
      [](const std::vector<ChatMessage>&) -> Result<std::vector<int32_t>> {
        return fail(ErrorCode::kInvalidArgument, "template", "no");
      },
      100);
  EXPECT_EQ(session.ask("hi").error().where, "template");
  EXPECT_TRUE(session.messages().empty());
}

}  // namespace
}  // namespace assay
