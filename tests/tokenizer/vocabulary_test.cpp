// Broken vocabularies: each is one clear error.
#include "tokenizer/vocabulary.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tokenizer/tokenizer.h"
#include "tokenizer/toy_vocabulary.h"

namespace assay {
namespace {

using tokenizer_test::toy_byte_level_spec;

struct Broken {
  std::string name;
  std::function<void(VocabSpec&)> damage;
  std::string expected;  // part of the message
  ErrorCode code = ErrorCode::kCorrupt;
};

VocabSpec toy_unigram_spec() {
  VocabSpec spec;
  spec.kind = VocabKind::kUnigram;
  spec.tokens = {"<unk>", "a", "\u2581"};
  spec.scores = {0, -1, -2};
  spec.unknown = 0;
  return spec;
}

void expect_errors(const std::function<VocabSpec()>& make, const std::vector<Broken>& cases) {
  ASSERT_TRUE(Tokenizer::create(make()));
  for (const Broken& broken : cases) {
    VocabSpec spec = make();
    broken.damage(spec);
    const auto tokenizer = Tokenizer::create(std::move(spec));
    ASSERT_FALSE(tokenizer) << broken.name;
    EXPECT_EQ(tokenizer.error().code, broken.code) << broken.name;
    EXPECT_NE(tokenizer.error().message().find(broken.expected), std::string::npos)
        << broken.name << ": " << tokenizer.error().message();
  }
}

TEST(Vocabulary, broken_byte_level_specs_are_errors) {
  const std::vector<Broken> cases = {
      {"no tokens", [](VocabSpec& spec) { spec.tokens.clear(); }, "found none"},
      {"duplicate", [](VocabSpec& spec) { spec.tokens.push_back("a"); }, "tokens 97 and 257 are both 'a'"},
      {"missing part", [](VocabSpec& spec) { spec.merges.push_back("a zz"); },
       "its right part is not a token"},
      {"missing whole", [](VocabSpec& spec) { spec.merges.push_back("z z"); }, "the whole is not a token"},
      {"one part", [](VocabSpec& spec) { spec.merges.push_back("ab"); }, "expected 'left right'"},
      {"empty merge", [](VocabSpec& spec) { spec.merges.push_back(""); }, "expected 'left right'"},
      {"kinds", [](VocabSpec& spec) { spec.kinds.resize(3); }, "token kinds, found 3"},
      {"bad kind", [](VocabSpec& spec) { spec.kinds.assign(spec.tokens.size(), static_cast<TokenKind>(99)); },
       "unknown token kind"},
      {"bos", [](VocabSpec& spec) { spec.bos = 257; }, "BOS id below 257, found 257"},
      {"eos", [](VocabSpec& spec) { spec.eos = -1; }, "EOS id below 257, found -1"},
      {"unknown", [](VocabSpec& spec) { spec.unknown = 1 << 30; }, "unknown id"},
      {"padding", [](VocabSpec& spec) { spec.padding = -2; }, "padding id"},
      {"end", [](VocabSpec& spec) { spec.end_of_generation = {1, 1000}; }, "end-of-generation id"},
      {"added id", [](VocabSpec& spec) { spec.added.push_back({.id = -5, .text = "x"}); }, "added token id"},
      {"added twice",
       [](VocabSpec& spec) { spec.added = {{.id = 1, .text = "<x>"}, {.id = 2, .text = "<x>"}}; },
       "are both '<x>'"},
      {"add_bos", [](VocabSpec& spec) { spec.add_bos = true; }, "BOS is to be added"},
      {"add_eos", [](VocabSpec& spec) { spec.add_eos = true; }, "EOS is to be added"},
      {"long token", [](VocabSpec& spec) { spec.tokens[5] = std::string(100'000, 'q'); },
       "found 100000 in token 5"},
      {"pattern",
       [](VocabSpec& spec) {
         spec.pre_tokenizer.clear();
         spec.split_patterns = {"(a"};
       },
       "not a regular expression"},
      {"set operation",
       [](VocabSpec& spec) {
         spec.pre_tokenizer.clear();
         spec.split_patterns = {"[a&&b]"};
       },
       "set intersection", ErrorCode::kUnsupported},
      {"pre-tokenizer", [](VocabSpec& spec) { spec.pre_tokenizer = "gpt-9"; }, "qwen2, qwen35, refact",
       ErrorCode::kUnsupported},
      {"kind", [](VocabSpec& spec) { spec.kind = VocabKind::kCount; }, "unknown kind",
       ErrorCode::kUnsupported},
  };
  expect_errors([] { return toy_byte_level_spec({"a b"}); }, cases);
}

TEST(Vocabulary, broken_unigram_specs_are_errors) {
  const std::vector<Broken> cases = {
      {"scores", [](VocabSpec& spec) { spec.scores.pop_back(); }, "expected 3 token scores, found 2"},
      {"nan", [](VocabSpec& spec) { spec.scores[1] = std::numeric_limits<float>::quiet_NaN(); },
       "finite scores"},
      {"infinite", [](VocabSpec& spec) { spec.scores[1] = -std::numeric_limits<float>::infinity(); },
       "finite scores"},
      {"charsmap", [](VocabSpec& spec) { spec.precompiled_charsmap = {1, 2}; }, "precompiled charsmap"},
      {"charsmap length", [](VocabSpec& spec) { spec.precompiled_charsmap = {8, 0, 0, 0, 1}; },
       "expected a trie"},
      {"charsmap end", [](VocabSpec& spec) { spec.precompiled_charsmap = {0, 0, 0, 0, 'x'}; }, "zero byte"},
  };
  expect_errors(toy_unigram_spec, cases);
}

TEST(Vocabulary, padding_entries_may_repeat) {
  VocabSpec spec = toy_byte_level_spec();
  spec.tokens.insert(spec.tokens.end(), {"", "", "pad", "pad"});
  spec.kinds.assign(spec.tokens.size(), TokenKind::kNormal);
  spec.kinds[258] = spec.kinds[259] = TokenKind::kUnused;
  const auto tokenizer = Tokenizer::create(std::move(spec));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(tokenizer->vocab_size(), 260);
  EXPECT_EQ(tokenizer->token_bytes(256), "");
}

TEST(Vocabulary, damaged_charsmaps_never_read_outside) {
  std::vector<uint8_t> blob = {16, 0, 0, 0};
  for (int i = 0; i < 16; ++i) blob.push_back(static_cast<uint8_t>(i * 89 + 255));
  blob.insert(blob.end(), {'x', 0});
  for (size_t at = 4; at < 20; ++at) {
    for (int value = 0; value < 256; ++value) {
      VocabSpec spec = toy_unigram_spec();
      blob[at] = static_cast<uint8_t>(value);
      spec.precompiled_charsmap = blob;
      const auto tokenizer = Tokenizer::create(std::move(spec));
      ASSERT_TRUE(tokenizer);
      EXPECT_FALSE(tokenizer->encode("a \u00E9\xFF\x01").empty());
    }
  }
}

}  // namespace
}  // namespace assay
