// The reader against real files. Expected values: llama.cpp (commit de3ff81), read with vocab_only and
// printed by
//   llama_vocab_type, llama_vocab_n_tokens, llama_vocab_bos, llama_vocab_eos, llama_vocab_get_add_bos,
//   llama_vocab_get_add_eos, every id with llama_vocab_is_eog, and the number of ids per
//   llama_vocab_get_attr.
// Tokens that are control and user-defined at once there (1 of phi-3, 3 of deepseek-coder) are control tokens
// here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "modelfile/checkpoint.h"

namespace assay {
namespace {

std::filesystem::path shared_data() {
  if (const char* set = std::getenv("ASSAY_SHARED_DATA"); set != nullptr && *set != '\0') return set;
  return ASSAY_SOURCE_DIR "/../shared/data";
}

// A model of the cache, or a file of the shared data; empty when absent.
std::filesystem::path locate(const std::string& name) {
  for (const auto& folder : {assay_home() / "models", shared_data() / "vocab", shared_data() / "models"}) {
    std::error_code ignored;
    if (std::filesystem::exists(folder / name, ignored)) return folder / name;
  }
  return {};
}

struct KnownVocab {
  std::string file;
  VocabKind kind;
  size_t n_tokens;
  int bos, eos;
  bool add_bos, add_eos;
  std::vector<int32_t> ends;
  int n_control, n_user_defined, n_unknown, n_byte;
};

void PrintTo(const KnownVocab& known, std::ostream* out) {
  *out << known.file;
}

constexpr auto kBpe = VocabKind::kByteLevelBpe;
constexpr auto kSpm = VocabKind::kSentencePieceBpe;

const std::vector<KnownVocab>& known_vocabs() {
  static const std::vector<KnownVocab> kKnown = {
      {"SmolLM2-135M-Instruct.Q4_1.gguf", kBpe, 49152, 1, 2, 0, 0, {0, 2, 4}, 17, 0, 0, 0},
      {"stories260K.gguf", kSpm, 512, 1, 2, 1, 0, {2}, 2, 0, 1, 256},
      {"ggml-vocab-aquila.gguf", kBpe, 100008, 0, 0, 0, 0, {0, 100007}, 9, 0, 0, 0},
      {"ggml-vocab-baichuan.gguf", kSpm, 64000, 1, 2, 1, 0, {2}, 2, 0, 1, 256},
      {"ggml-vocab-command-r.gguf", kBpe, 256000, 5, 255001, 1, 0, {0, 255001}, 9, 999, 0, 0},
      {"ggml-vocab-deepseek-coder.gguf", kBpe, 32256, 32013, 32014, 1, 0, {32014}, 5, 251, 0, 0},
      {"ggml-vocab-deepseek-llm.gguf", kBpe, 102400, 100000, 100001, 1, 0, {100001}, 2, 2398, 0, 0},
      {"ggml-vocab-falcon.gguf", kBpe, 65024, 11, 11, 0, 0, {11}, 12, 0, 0, 0},
      {"ggml-vocab-gpt-2.gguf", kBpe, 50257, 50256, 50256, 0, 0, {50256}, 1, 0, 0, 0},
      {"ggml-vocab-gpt-neox.gguf", kBpe, 50432, 0, 0, 0, 0, {0}, 2, 178, 0, 0},
      {"ggml-vocab-llama-bpe.gguf", kBpe, 128256, 128000, 128001, 1, 0, {128001, 128009}, 256, 0, 0, 0},
      {"ggml-vocab-llama-spm.gguf", kSpm, 32000, 1, 2, 1, 0, {2}, 2, 0, 1, 256},
      {"ggml-vocab-mpt.gguf", kBpe, 50432, 0, 0, 0, 0, {0}, 2, 178, 0, 0},
      {"ggml-vocab-nomic-bert-moe.gguf", VocabKind::kUnigram, 250048, 0, 2, 1, 1, {2}, 4, 0, 1, 0},
      {"ggml-vocab-phi-3.gguf", kSpm, 32064, 1, 32000, 1, 0, {2, 32000, 32007}, 14, 0, 53, 256},
      {"ggml-vocab-qwen2.gguf", kBpe, 151936, 151643, 151643, 0, 0, {128247, 151643, 151645}, 4, 290, 0, 0},
      {"ggml-vocab-qwen35.gguf", kBpe, 151936, 151643, 151643, 0, 0, {128247, 151643, 151645}, 4, 290, 0, 0},
      {"ggml-vocab-refact.gguf", kBpe, 49216, 0, 0, 0, 0, {0, 4, 18}, 19, 64, 0, 0},
      {"ggml-vocab-starcoder.gguf", kBpe, 49152, 0, 0, 0, 0, {0, 4}, 38, 0, 0, 0},
  };
  return kKnown;
}

class RealVocab : public testing::TestWithParam<KnownVocab> {};

TEST_P(RealVocab, agrees_with_llama_cpp) {
  const KnownVocab& known = GetParam();
  const auto path = locate(known.file);
  if (path.empty()) GTEST_SKIP() << known.file << " is not on this machine";
  const auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  const auto vocab = checkpoint->vocab();
  ASSERT_TRUE(vocab) << vocab.error().message();
  EXPECT_EQ(vocab->kind, known.kind);
  EXPECT_EQ(vocab->tokens.size(), known.n_tokens);
  EXPECT_EQ(vocab->bos.value_or(-1), known.bos);
  EXPECT_EQ(vocab->eos.value_or(-1), known.eos);
  EXPECT_EQ(vocab->add_bos, known.add_bos);
  EXPECT_EQ(vocab->add_eos, known.add_eos);
  EXPECT_EQ(vocab->end_of_generation, known.ends);
  const auto count = [&](TokenKind kind) {
    return std::count(vocab->kinds.begin(), vocab->kinds.end(), kind);
  };
  EXPECT_EQ(count(TokenKind::kControl), known.n_control);
  EXPECT_EQ(count(TokenKind::kUserDefined), known.n_user_defined);
  EXPECT_EQ(count(TokenKind::kUnknown), known.n_unknown);
  EXPECT_EQ(count(TokenKind::kByte), known.n_byte);
  EXPECT_EQ(vocab->added.size(),
            static_cast<size_t>(known.n_control + known.n_user_defined + known.n_unknown));
}

std::string test_name(const testing::TestParamInfo<KnownVocab>& info) {
  std::string name = info.param.file.substr(0, info.param.file.rfind('.'));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

// Files that SOURCES.md of the shared data promises skip where they are absent; the others (models/ of
// llama.cpp) run where somebody has put them beside those.
std::vector<KnownVocab> vocabs_to_test() {
  const std::vector<std::string> promised = {"SmolLM2-135M-Instruct.Q4_1.gguf", "stories260K.gguf",
                                             "ggml-vocab-deepseek-coder.gguf", "ggml-vocab-gpt-2.gguf",
                                             "ggml-vocab-llama-spm.gguf"};
  std::vector<KnownVocab> chosen;
  for (const KnownVocab& known : known_vocabs()) {
    if (std::ranges::count(promised, known.file) > 0 || !locate(known.file).empty()) chosen.push_back(known);
  }
  return chosen;
}
INSTANTIATE_TEST_SUITE_P(Files, RealVocab, testing::ValuesIn(vocabs_to_test()), test_name);

}  // namespace
}  // namespace assay
