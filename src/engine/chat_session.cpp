#include "engine/chat_session.h"

#include <utility>

#include "base/check.h"

namespace assay {

ChatSession::ChatSession(Encode encode, int64_t max_prompt_tokens, std::string system)
    : encode_(std::move(encode)), max_prompt_tokens_(max_prompt_tokens), system_(std::move(system)) {}

std::vector<ChatMessage> ChatSession::with_system(std::vector<ChatMessage> messages) const {
  if (!system_.empty()) messages.insert(messages.begin(), {"system", system_});
  return messages;
}

Result<ChatSession::Turn> ChatSession::ask(std::string question) {
  CHECK(messages_.size() % 2 == 0);
  std::vector<ChatMessage> asked = messages_;
  asked.push_back({"user", std::move(question)});
  Turn turn;
  while (true) {
    ASSIGN_OR_RETURN(turn.prompt, encode_(with_system(asked)));
    if (std::ssize(turn.prompt) <= max_prompt_tokens_) break;
    if (asked.size() == 1)
      return fail(ErrorCode::kInvalidArgument, "question",
                  "expected at most {} tokens (with the template and the system message), found {}",
                  max_prompt_tokens_, turn.prompt.size());
    asked.erase(asked.begin(), asked.begin() + 2);
    turn.n_forgotten += 2;
  }
  messages_ = std::move(asked);
  return turn;
}

void ChatSession::answer(std::string text) {
  CHECK(messages_.size() % 2 == 1);
  messages_.push_back({"assistant", std::move(text)});
}

void ChatSession::withdraw() {
  CHECK(messages_.size() % 2 == 1);
  messages_.pop_back();
}

void ChatSession::reset() {
  messages_.clear();
}

}  // namespace assay
