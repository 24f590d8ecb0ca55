// Small vocabularies made in code, for tests that need no file.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/vocab_spec.h"

namespace assay::tokenizer_test {

// Ids 0..255 are the bytes; merges (spelled in the byte alphabet) make the tokens that follow.
inline VocabSpec toy_byte_level_spec(std::initializer_list<std::string_view> merges = {}) {
  VocabSpec spec;
  for (int byte = 0; byte < 256; ++byte) {
    spec.tokens.emplace_back(tokenizer_internal::spell_byte(static_cast<uint8_t>(byte)));
  }
  for (const std::string_view merge : merges) {
    spec.merges.emplace_back(merge);
    const size_t space = merge.find(' ');
    spec.tokens.push_back(std::string(merge.substr(0, space)) + std::string(merge.substr(space + 1)));
  }
  spec.pre_tokenizer = "gpt-2";
  return spec;
}

// Appends a special token; returns its id.
inline int32_t add_special(VocabSpec& spec, std::string_view text) {
  const auto id = static_cast<int32_t>(spec.tokens.size());
  spec.tokens.emplace_back(text);
  spec.added.push_back({.id = id, .text = std::string(text), .special = true});
  return id;
}

}  // namespace assay::tokenizer_test
