// The tokenizer on its own: a toy byte-level BPE vocabulary made in code, a text to ids and back, a stream
// that never cuts a character. Usage: tokenizer_alone [text]
#include <cstdio>
#include <string>

#include "tokenizer/tokenizer.h"

namespace {

assay::VocabSpec toy_vocabulary() {
  assay::VocabSpec spec;
  // The byte alphabet of GPT-2: printable ASCII spells itself; what is left is spelled from U+00A1 up, then
  // U+0100.
  const auto add = [&](char32_t code) {
    std::string utf8;
    if (code < 0x80)
      utf8 = static_cast<char>(code);
    else
      utf8 = {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
    spec.tokens.push_back(utf8);
  };
  for (char32_t code = 0x21; code <= 0x143; ++code) {
    if (code < 0x7F || (code > 0xA0 && code != 0xAD)) add(code);
  }
  for (const char* merge : {"t h", "th e", "\u0120 the", "i n", "o n"}) {
    const std::string pair = merge;
    const size_t space = pair.find(' ');
    spec.merges.push_back(pair);
    spec.tokens.push_back(pair.substr(0, space) + pair.substr(space + 1));
  }
  spec.pre_tokenizer = "gpt-2";
  spec.bos = static_cast<int32_t>(spec.tokens.size());
  spec.tokens.emplace_back("<s>");
  spec.added.push_back({.id = *spec.bos, .text = "<s>", .special = true});
  spec.add_bos = true;
  return spec;
}

}  // namespace

int main(int argc, char** argv) {
  const auto tokenizer = assay::Tokenizer::create(toy_vocabulary());
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message().c_str());
    return 1;
  }
  const std::string text = argc > 1 ? argv[1] : "the thin stone on the bench \u2014 \U0001F642";
  const std::vector<int32_t> ids = tokenizer->encode(text);
  assay::StreamDecoder stream(*tokenizer);
  std::string streamed;
  for (const int32_t id : ids) {
    const std::string part = stream.push(id);
    std::printf("%5d  '%s'\n", id, part.c_str());
    streamed += part;
  }
  streamed += stream.finish();
  std::printf("%zu bytes, %zu tokens, back again: %s\n", text.size(), ids.size(), streamed.c_str());
  return tokenizer->decode(ids) == text ? 0 : 1;
}
