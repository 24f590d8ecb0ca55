// Keeps text of a conversation that spells a special token from becoming that token: whoever may write a
// message must not be able to end it and to begin another in a different role. Before the chat template sees
// the messages, each such spelling is replaced by a private-use character that occurs nowhere in them; behind
// it, the spelling is put back and marked as text. So templates can cut, trim and join as they like, and a
// conversation without such spellings is not touched at all. What a template itself writes stays special. A
// spelling that two fields make only together is not seen. Thread safety: none; made for one conversation.
// Cost: linear in the conversation.
#pragma once

#include <boost/json/array.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/loaded_model.h"
#include "tokenizer/tokenizer.h"

namespace assay {

class SpecialTextMask {
 public:
  // Borrows the tokenizer.
  explicit SpecialTextMask(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // In every string that the client wrote, names of members included. False: the conversation uses so many
  // private-use characters that none is left.
  bool hide(std::vector<ChatMessage>& messages, boost::json::array& tools);

  struct Revealed {
    std::string text;
    std::vector<TextRange> literal;  // of EncodeOptions
  };
  Revealed reveal(std::string rendered) const;

 private:
  using Texts = std::map<std::string, std::string, std::less<>>;
  void collect(std::string_view text);
  bool choose_placeholders();
  std::string masked(std::string_view text) const;

  const Tokenizer& tokenizer_;
  std::set<std::string, std::less<>> spellings_;
  std::set<std::string, std::less<>> taken_;  // private-use characters of the conversation
  Texts placeholders_;                        // by spelling
  Texts hidden_;                              // spellings by placeholder
};

}  // namespace assay
