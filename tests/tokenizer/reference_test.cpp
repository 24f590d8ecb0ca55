// Token ids against HF `tokenizers` and llama.cpp over 2,500 strings; see oracle/record_ids.py.
#include <gtest/gtest.h>

#include "tokenizer/recorded.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab_files.h"

namespace assay {
namespace {

using tokenizer_test::hash24;
using tokenizer_test::recorded_strings;

// How many strings are encoded otherwise than the reference did.
int count_differences(const Tokenizer& tokenizer, const std::string& name) {
  const auto references = tokenizer_test::recorded_references("ids.json");
  const tokenizer_test::Reference& reference = references.at(name);
  int wrong = 0;
  for (size_t i = 0; i < recorded_strings().size(); ++i) {
    const std::string& text = recorded_strings()[i];
    const auto ids = tokenizer.encode(text, {.add_bos = false, .parse_special = true});
    const auto example = reference.examples.find(i);
    if (example != reference.examples.end()) {
      EXPECT_EQ(ids, example->second) << text;
    }
    if (hash24(ids) == reference.hashes.substr(i * 4, 4)) continue;
    if (++wrong <= 10) {
      ADD_FAILURE() << name << ", string " << i << " '" << text << "': " << testing::PrintToString(ids);
    }
  }
  return wrong;
}

// decode(encode(text)) == text. U+2581 in a text comes back as a space from SentencePiece vocabularies.
void expect_round_trip(const Tokenizer& tokenizer) {
  const bool byte_level = tokenizer.spec().kind == VocabKind::kByteLevelBpe;
  for (const std::string& text : recorded_strings()) {
    if (!byte_level && text.find("\u2581") != std::string::npos) continue;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.add_bos = false}), false), text);
  }
}

class GgufReference : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(GgufReference, ids_agree_with_llama_cpp) {
  const auto& [name, file] = GetParam();
  const auto path =
      file.empty() ? tokenizer_test::smollm2_path() : tokenizer_test::shared_data() / "vocab" / file;
  const auto spec = tokenizer_test::read_gguf_vocabulary(path);
  if (!spec) GTEST_SKIP() << spec.error().message();
  const auto tokenizer = Tokenizer::create(*spec);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(count_differences(*tokenizer, name), 0);
  if (name != "smollm2") expect_round_trip(*tokenizer);  // SmolLM2 has no tokens for most control characters
}

INSTANTIATE_TEST_SUITE_P(Files, GgufReference,
                         testing::Values(std::pair("smollm2", ""),
                                         std::pair("gpt-2", "ggml-vocab-gpt-2.gguf"),
                                         std::pair("deepseek-coder", "ggml-vocab-deepseek-coder.gguf"),
                                         std::pair("llama-spm", "ggml-vocab-llama-spm.gguf")));

class NpmReference : public testing::TestWithParam<std::string> {};

TEST_P(NpmReference, ids_agree_with_hf_tokenizers) {
  const auto path = tokenizer_test::npm_tokenizer_path(GetParam());
  if (!path) GTEST_SKIP() << "ASSAY_TOKENIZERS is not set";
  const auto spec = tokenizer_test::read_tokenizer_json(*path);
  if (!spec) GTEST_SKIP() << spec.error().message();
  const auto tokenizer = Tokenizer::create(*spec);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(count_differences(*tokenizer, GetParam()), 0);
  if (!spec->normalise_nfc) expect_round_trip(*tokenizer);
}

INSTANTIATE_TEST_SUITE_P(Names, NpmReference,
                         testing::Values("deepseek_v3", "gemini", "gemma3", "gpt35turbo", "gpt4o", "gptoss",
                                         "llama2", "llama3_1", "qwen3"));

}  // namespace
}  // namespace assay
