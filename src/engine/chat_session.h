// A conversation that fits the context: the messages so far, and the prompt for the next answer. When it
// grows too long, the oldest exchanges go first; the system message stays. Ownership: holds the encoder.
// Thread safety: none. Failure: what the encoder reports (a template may refuse a conversation),
// kInvalidArgument when the question alone does not fit; the conversation is then unchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/loaded_model.h"

namespace assay {

class ChatSession {
 public:
  using Encode = std::function<Result<std::vector<int32_t>>(const std::vector<ChatMessage>&)>;

  // `max_prompt_tokens` leaves the rest of the context to the answer.
  ChatSession(Encode encode, int64_t max_prompt_tokens, std::string system = {});

  struct Turn {
    std::vector<int32_t> prompt;
    int64_t n_forgotten = 0;  // messages dropped to make room
  };
  // Appends the question. Follow with answer() or withdraw().
  Result<Turn> ask(std::string question);
  void answer(std::string text);
  void withdraw();  // takes the last question back

  void reset();  // keeps the system message
  void set_system(std::string system) { system_ = std::move(system); }

  const std::string& system() const { return system_; }
  const std::vector<ChatMessage>& messages() const { return messages_; }  // without the system message

 private:
  std::vector<ChatMessage> with_system(std::vector<ChatMessage> messages) const;

  Encode encode_;
  int64_t max_prompt_tokens_;
  std::string system_;
  std::vector<ChatMessage> messages_;  // user, assistant, user, ...
};

}  // namespace assay
