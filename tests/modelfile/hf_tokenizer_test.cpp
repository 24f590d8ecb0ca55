// The rules of tokenizer.json of eleven model families, shortened by data/shorten_tokenizer.py. Numbers of
// tokens and of added and special tokens: HF tokenizers 0.23.3 on the same files,
//   t.get_vocab_size(with_added_tokens=True), t.get_added_tokens_decoder()
// The rest was read from the files themselves.
#include "modelfile/hf_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "modelfile/json_document.h"

namespace assay::modelfile_internal {
namespace {

struct KnownTokenizer {
  std::string name;
  VocabKind kind;
  size_t n_tokens, n_added, n_special;
  size_t n_patterns;
  bool isolate_digits, nfc, space_prefix, add_bos, byte_fallback, ignore_merges;
  std::string bos, eos;
};

void PrintTo(const KnownTokenizer& known, std::ostream* out) {
  *out << known.name;
}

constexpr auto kBytes = VocabKind::kByteLevelBpe;
constexpr auto kPieces = VocabKind::kSentencePieceBpe;

const std::vector<KnownTokenizer>& known_tokenizers() {
  static const std::vector<KnownTokenizer> kKnown = {
      {"command_r_plus", kBytes, 38, 8, 7, 1, 1, 1, 0, 1, 0, 0, "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>"},
      {"deepseek_v3", kBytes, 41, 6, 6, 3, 0, 0, 0, 1, 0, 0, "<｜begin▁of▁sentence｜>",
       "<｜end▁of▁sentence｜>"},
      {"gemma3", kPieces, 25, 8, 5, 0, 0, 0, 0, 1, 1, 0, "<bos>", "<end_of_turn>"},
      {"gpt2", kBytes, 40, 1, 1, 1, 0, 0, 0, 0, 0, 0, "<|endoftext|>", "<|endoftext|>"},
      {"gpt4o", kBytes, 39, 2, 2, 1, 0, 0, 0, 0, 0, 0, "<|endoftext|>", "<|endoftext|>"},
      {"gptoss", kBytes, 41, 7, 7, 1, 0, 0, 0, 0, 0, 1, "<|startoftext|>", "<|return|>"},
      {"llama2", kPieces, 40, 3, 3, 0, 0, 0, 1, 1, 1, 0, "<s>", "</s>"},
      {"llama3_1", kBytes, 39, 6, 6, 1, 0, 0, 0, 1, 0, 1, "<|begin_of_text|>", "<|eot_id|>"},
      {"mistral_nemo", kBytes, 19, 7, 7, 1, 0, 0, 0, 1, 0, 1, "<s>", "</s>"},
      {"qwen2_5", kBytes, 42, 6, 6, 1, 0, 1, 0, 0, 0, 0, "", "<|im_end|>"},
      {"qwen3", kBytes, 42, 6, 6, 1, 0, 1, 0, 0, 0, 0, "", "<|im_end|>"},
  };
  return kKnown;
}

class RealTokenizer : public testing::TestWithParam<KnownTokenizer> {};

TEST_P(RealTokenizer, rules_are_read) {
  const KnownTokenizer& known = GetParam();
  const auto files = read_tokenizer_files(ASSAY_SOURCE_DIR "/tests/modelfile/data/tokenizers/" + known.name);
  ASSERT_TRUE(files) << files.error().message();
  const auto spec = vocab_from_tokenizer_files(*files, known.name);
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(spec->kind, known.kind);
  EXPECT_EQ(spec->tokens.size(), known.n_tokens);
  EXPECT_EQ(spec->kinds.size(), known.n_tokens);
  EXPECT_EQ(spec->added.size(), known.n_added);
  // Tokens that end a generation count as special, whatever the file says.
  const auto special = [&](const AddedToken& token) {
    return token.special && !(known.name == "command_r_plus" && token.text == known.eos);
  };
  EXPECT_EQ(std::ranges::count_if(spec->added, special), static_cast<std::ptrdiff_t>(known.n_special));
  EXPECT_EQ(spec->split_patterns.size(), known.n_patterns);
  EXPECT_EQ(spec->isolate_digits, known.isolate_digits);
  EXPECT_EQ(spec->normalise_nfc, known.nfc);
  EXPECT_EQ(spec->add_space_prefix, known.space_prefix);
  EXPECT_EQ(spec->add_bos, known.add_bos);
  EXPECT_FALSE(spec->add_eos);
  EXPECT_EQ(spec->byte_fallback, known.byte_fallback);
  EXPECT_EQ(spec->ignore_merges, known.ignore_merges);
  EXPECT_EQ(spec->merges.size(), 6U);
  const auto text = [&](const std::optional<int32_t>& id) {
    return id ? spec->tokens.at(static_cast<size_t>(*id)) : std::string();
  };
  EXPECT_EQ(text(spec->bos), known.bos);
  EXPECT_EQ(text(spec->eos), known.eos);
  EXPECT_TRUE(std::ranges::count(spec->end_of_generation, *spec->eos) == 1);
}

INSTANTIATE_TEST_SUITE_P(Families, RealTokenizer, testing::ValuesIn(known_tokenizers()),
                         [](const auto& known) { return known.param.name; });

// A tokenizer of three letters with what a test changes.
Result<VocabSpec> read(std::string_view changes, HfTokenizerFiles files = {}) {
  const std::string text = R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},
      "added_tokens":[{"id":4,"content":"</s>","special":true},{"id":3,"content":"<s>","special":true}])" +
                           std::string(changes) + "}";
  auto document = parse_json(text, "test");
  if (!document) return std::unexpected(document.error());
  files.tokenizer = std::move(*document);
  return vocab_from_tokenizer_files(files, "test");
}

boost::json::value json(std::string_view text) {
  return *parse_json(text, "test");
}

TEST(HfTokenizer, pre_tokenizers_become_patterns_in_order) {
  const auto spec = read(R"(,"pre_tokenizer":{"type":"Sequence","pretokenizers":[
      {"type":"Split","pattern":{"String":"a.b"},"behavior":"Isolated","invert":false},
      {"type":"Punctuation","behavior":"Contiguous"},
      {"type":"Digits","individual_digits":true},
      {"type":"ByteLevel","add_prefix_space":true,"use_regex":false}]})");
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(spec->split_patterns, (std::vector<std::string>{R"(a\.b)", R"([\p{P}$+<=>^`|~]+)", R"(\p{N})"}));
  EXPECT_FALSE(spec->isolate_digits);
  EXPECT_TRUE(spec->add_space_prefix);
  EXPECT_EQ(spec->kind, VocabKind::kByteLevelBpe);
}

TEST(HfTokenizer, metaspace_marks_spaces) {
  for (const auto& [scheme, prefix] :
       {std::pair{R"("prepend_scheme":"first")", true}, std::pair{R"("prepend_scheme":"never")", false},
        std::pair{R"("add_prefix_space":true)", true}}) {
    const auto spec =
        read(std::string(R"(,"pre_tokenizer":{"type":"Metaspace","replacement":"▁",)") + scheme + "}");
    ASSERT_TRUE(spec) << spec.error().message();
    EXPECT_EQ(spec->kind, VocabKind::kSentencePieceBpe);
    EXPECT_EQ(spec->add_space_prefix, prefix) << scheme;
  }
}

TEST(HfTokenizer, template_decides_what_stands_around_a_text) {
  const std::string around = R"(,"post_processor":{"type":"TemplateProcessing","single":[
      {"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},
      {"SpecialToken":{"id":"</s>","type_id":0}}]})";
  const auto plain = read(around);
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_TRUE(plain->add_bos);
  EXPECT_TRUE(plain->add_eos);
  EXPECT_EQ(plain->bos, 3);
  EXPECT_EQ(plain->eos, 4);
  HfTokenizerFiles files;
  files.tokenizer_config =
      json(R"({"bos_token":{"content":"<s>"},"eos_token":"</s>","add_eos_token":false})");
  const auto configured = read(around, files);
  ASSERT_TRUE(configured);
  EXPECT_TRUE(configured->add_bos);
  EXPECT_FALSE(configured->add_eos);
}

TEST(HfTokenizer, ends_come_from_every_file) {
  HfTokenizerFiles files;
  files.tokenizer_config = json(R"({"eos_token":"</s>"})");
  files.generation_config = json(R"({"eos_token_id":[1,4,99]})");
  files.config = json(R"({"eos_token_id":2,"bos_token_id":3})");
  const auto spec = read("", files);
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(spec->end_of_generation, (std::vector<int32_t>{1, 2, 4}));
  EXPECT_EQ(spec->eos, 4);
  EXPECT_EQ(spec->bos, 3);
}

TEST(HfTokenizer, chat_template_is_a_text_or_the_default_of_several) {
  HfTokenizerFiles files;
  files.tokenizer_config =
      json(R"({"chat_template":[{"name":"rag","template":"R"},{"name":"default","template":"D"}]})");
  EXPECT_EQ(read("", files)->chat_template, "D");
  files.tokenizer_config = json(R"({"chat_template":"T"})");
  EXPECT_EQ(read("", files)->chat_template, "T");
  files.chat_template = "J";  // chat_template.jinja
  EXPECT_EQ(read("", files)->chat_template, "J");
}

TEST(HfTokenizer, gaps_are_unused_tokens) {
  const auto spec = read(R"(,"x":0)");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->tokens, (std::vector<std::string>{"a", "b", "ab", "<s>", "</s>"}));
  HfTokenizerFiles files;
  files.tokenizer = json(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},
      "added_tokens":[{"id":3,"content":"x"}]})");
  const auto gapped = vocab_from_tokenizer_files(files, "test");
  ASSERT_TRUE(gapped);
  EXPECT_EQ(gapped->tokens, (std::vector<std::string>{"a", "[UNUSED_1]", "[UNUSED_2]", "x"}));
  EXPECT_EQ(gapped->kinds[1], TokenKind::kUnused);
  EXPECT_EQ(gapped->kinds[3], TokenKind::kUserDefined);
}

TEST(HfTokenizer, unigram_takes_pieces_scores_and_charsmap) {
  HfTokenizerFiles files;
  files.tokenizer = json(R"({"normalizer":{"type":"Sequence","normalizers":[
        {"type":"Precompiled","precompiled_charsmap":"AAECA/8="},
        {"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"}]},
      "pre_tokenizer":{"type":"Metaspace","replacement":"▁"},
      "model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁a",-1.5],["<0x0A>",-2]],"byte_fallback":true}})");
  const auto spec = vocab_from_tokenizer_files(files, "test");
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(spec->kind, VocabKind::kUnigram);
  EXPECT_EQ(spec->scores, (std::vector<float>{0, -1.5F, -2}));
  EXPECT_EQ(spec->precompiled_charsmap, (std::vector<uint8_t>{0, 1, 2, 3, 255}));
  EXPECT_TRUE(spec->remove_extra_whitespaces);
  EXPECT_EQ(spec->unknown, 0);
  EXPECT_EQ(spec->kinds, (std::vector<TokenKind>{TokenKind::kUnknown, TokenKind::kNormal, TokenKind::kByte}));
}

}  // namespace
}  // namespace assay::modelfile_internal
