// Any bytes as text and as ids, and vocabularies derived from the input, never crash; byte-level BPE loses
// nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace {

using assay::Tokenizer;
using assay::VocabKind;
using assay::VocabSpec;

// Takes values off the front of the input.
struct Input {
  const uint8_t* data;
  size_t size;
  uint8_t byte() { return size == 0 ? 0 : (--size, *data++); }
  std::string text(size_t length) {
    length = std::min(length, size);
    std::string taken(reinterpret_cast<const char*>(data), length);
    data += length;
    size -= length;
    return taken;
  }
};

VocabSpec byte_level_spec(Input& input) {
  VocabSpec spec;
  for (int byte = 0; byte < 256; ++byte) {
    spec.tokens.emplace_back(assay::tokenizer_internal::spell_byte(static_cast<uint8_t>(byte)));
  }
  const auto rules = assay::tokenizer_internal::all_pre_tokenizer_rules();
  const auto& chosen = rules[input.byte() % rules.size()];
  spec.pre_tokenizer = chosen.raw_utf8 ? "default" : chosen.names[0];
  for (int merges = input.byte() % 16; merges > 0; --merges) {
    const std::string left = spec.tokens[input.byte() % spec.tokens.size()];
    const std::string right = spec.tokens[input.byte() % spec.tokens.size()];
    const std::string whole = left + right;
    if (std::ranges::find(spec.tokens, whole) != spec.tokens.end()) continue;
    spec.merges.push_back(left + " " + right);
    spec.tokens.push_back(whole);
  }
  return spec;
}

// Often broken; create() must say so.
VocabSpec wild_spec(Input& input) {
  VocabSpec spec;
  spec.kind = static_cast<VocabKind>(input.byte() % 3);
  for (int tokens = input.byte() % 32; tokens > 0; --tokens) {
    spec.tokens.push_back(input.text(input.byte() % 6));
    spec.scores.push_back(static_cast<float>(input.byte()) - 128);
    spec.kinds.push_back(static_cast<assay::TokenKind>(input.byte() % 7));
  }
  spec.unknown = static_cast<int8_t>(input.byte());
  spec.bos = input.byte() % 8;
  spec.add_bos = spec.add_space_prefix = (input.byte() & 1) != 0;
  spec.remove_extra_whitespaces = spec.byte_fallback = spec.normalise_nfc = (input.byte() & 1) != 0;
  for (int merges = input.byte() % 8; merges > 0; --merges)
    spec.merges.push_back(input.text(input.byte() % 8));
  for (int added = input.byte() % 4; added > 0; --added) {
    const auto id = static_cast<int32_t>(input.byte() % 33);
    spec.added.push_back(
        {.id = id, .text = input.text(input.byte() % 6), .special = (id & 1) != 0, .strip_left = true});
  }
  const std::string charsmap = input.text(input.byte() % 64);
  spec.precompiled_charsmap.assign(charsmap.begin(), charsmap.end());
  if ((input.byte() & 1) != 0) spec.split_patterns.push_back(input.text(input.byte() % 16));
  return spec;
}

void check_stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  assay::StreamDecoder stream(tokenizer, false);
  for (const int32_t id : ids) CHECK(assay::tokenizer_internal::is_valid_utf8(stream.push(id)));
  CHECK(assay::tokenizer_internal::is_valid_utf8(stream.finish()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input{data, size};
  const bool wild = (input.byte() & 1) != 0;
  const auto tokenizer = Tokenizer::create(wild ? wild_spec(input) : byte_level_spec(input));
  if (!tokenizer) {
    CHECK(wild && !tokenizer.error().what.empty());
    return 0;
  }
  const std::string text = input.text(input.size);
  const std::vector<int32_t> ids = tokenizer->encode(text, {.parse_special = true});
  for (const int32_t id : ids) CHECK(id >= 0 && id < tokenizer->vocab_size());
  if (!wild && tokenizer->spec().kind == VocabKind::kByteLevelBpe)
    CHECK(tokenizer->decode(ids, false) == text);
  check_stream(*tokenizer, ids);
  check_stream(*tokenizer, std::vector<int32_t>(text.begin(), text.end()));
  return 0;
}
