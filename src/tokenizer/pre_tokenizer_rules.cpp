// The rules behind the names of GGUF's tokenizer.ggml.pre. The names are those that llama.cpp's converter
// writes; the patterns are those of the models' own tokenizer.json, rewritten where PCRE2 would need
// quadratic time.
#include <string>
#include <vector>

#include "tokenizer/pre_tokenizer.h"

namespace assay::tokenizer_internal {
namespace {

using Patterns = std::vector<std::string>;

const std::string kContraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const std::string kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// The end that most patterns since GPT-4's share: symbols with their line ends, line ends, other white space.
const std::string kSymbols = R"( ?[^\s\p{L}\p{N}]+[\r\n]*)";
const std::string kSpaces = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string kWord = R"([^\r\n\p{L}\p{N}]?\p{L}+)";

// GPT-4's (cl100k) shape; `numbers` is the pattern for digits.
std::string gpt4_like(const std::string& numbers) {
  return kContraction + "|" + kWord + "|" + numbers + "|" + kSymbols + "|" + kSpaces;
}

// Words in GPT-4o's (o200k) shape: capitals, then small letters, or capitals alone; `tail` follows each.
std::string cased_words(const std::string& tail) {
  const std::string first = R"([^\r\n\p{L}\p{N}]?)";
  const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
  const std::string lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  return first + upper + "*" + lower + "+" + tail + "|" + first + upper + "+" + lower + "*" + tail;
}

std::string gpt4o_like(const std::string& tail, const std::string& numbers) {
  return cased_words(tail) + "|" + numbers + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" + kSpaces;
}

// Kimi K2: GPT-4o's shape with Han apart. "Letters of these classes that are not Han" is stated as "nothing
// outside these classes, and not Han", since PCRE2 has no intersection of sets.
std::string kimi_k2() {
  const std::string first = R"([^\r\n\p{L}\p{N}]?)";
  const std::string upper = R"([^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}])";
  const std::string lower = R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}])";
  const std::string tail = kContraction + "?";
  return R"(\p{Han}+|)" + first + upper + "*" + lower + "+" + tail + "|" + first + upper + "+" + lower + "*" +
         tail + R"(|\p{N}{1,3}|)" + kSymbols + "|" + kSpaces;
}

// DeepSeek V3: words with marks, symbols apart; `symbols` is the pattern for punctuation.
std::string deepseek_v3_words(const std::string& symbols) {
  return R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)" + symbols;
}

const std::string kHanAndKana = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
const std::string kCjkOfDeepseek = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
// Cased letters, as DeepSeek LLM lists them (Unicode 11).
const std::string kLettersOfDeepseek =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A})"
    R"(\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134})"
    R"(\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787})"
    R"(\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
// White space at the end, each run tried once: the original \s+$ is tried again at each character of a run.
const std::string kSpaceAtEnd = R"((?<!\s)\s++$)";

Patterns deepseek_llm() {
  return {R"([\r\n])",
          kLettersOfDeepseek,
          R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
          kSpaceAtEnd,
          kCjkOfDeepseek,
          R"(\p{N}+)"};
}

Patterns deepseek_v3() {
  return {R"(\p{N}{1,3})", kHanAndKana, deepseek_v3_words(R"( ?[\p{P}\p{S}]+[\r\n]*|)" + kSpaces)};
}

Patterns youtu() {
  const std::string scripts =
      R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|)"
      R"([\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F})"
      R"(\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|)";
  return {scripts + kHanAndKana, gpt4o_like(kContraction + "?", R"(\p{N})")};
}

Patterns afmoe() {
  const std::string asian_scripts =
      R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{8C48}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F})"
      R"(\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})"
      R"(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";
  return {R"(\p{N}+)", std::string(kDigitCuts), asian_scripts,
          deepseek_v3_words(R"( ?[\p{P}\p{S}]+[\r\n]*|)" + kSpaces)};
}

Patterns chameleon() {
  return {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z",       R"([\t\n]|    |  )",
          R"(\p{N})",          R"([\p{P}!-/:-@\[-`{-~])", kGpt2};
}

// The original lists \s{512}(?!\S)|\s{256}(?!\S)|... instead of \s+(?!\S): each of these pieces of a long run
// would look through the rest of the run for a line end first.
Patterns jais2() {
  return {kContraction + "|" + kWord + R"(|\p{N}{1,3}|)" + kSymbols + R"(|\s*[\r\n]+|\s+(?!\S)|\s)",
          std::string(kSpaceHalvings)};
}

// The repeats are possessive: each space between letters can be read in one way only, so nothing is lost.
std::string exaone_moe() {
  return kContraction + R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}|)"
                        R"( ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
}

const std::string kBloom = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";

std::vector<PreTokenizerRules> make_rules() {
  return {
      {{"default"}, {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
      {{"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code",
        "gigachat", "a.x-4.0", "mellum", "modern-bert", "roberta-bpe", "exaone4", "mpt", "olmo", "jais",
        "trillion", "granite-docling"},
       {kGpt2}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
       {R"(\p{N})", kGpt2}},
      {{"falcon"}, {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano"},
       {gpt4_like(R"(\p{N}{1,3})")},
       true},
      {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, {gpt4_like(R"(\p{N}{1,3})")}},
      {{"minicpm5"}, {R"(\p{N}{1,3})", gpt4_like(R"(\p{N}+)")}, true},
      {{"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open",
        "grok-2"},
       {gpt4_like(R"(\p{N})")}},
      {{"qwen35"},
       {kContraction + R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" +
        kSpaces}},
      {{"ufakzeka"}, {kWord + R"(|\p{N}|)" + kSymbols + "|" + kSpaces}},
      {{"laguna"}, {R"([^\n]+|[\n]+)", gpt4_like(R"(\p{N})")}},
      {{"seed-coder"}, {kContraction + "|" + kWord + R"(|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)" + kSpaces}},
      {{"bailingmoe", "bailingmoe2", "llada-moe"},
       {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|)"
        R"(\s*[\r\n]|\s+(?!\S)|\s+)"}},
      {{"jais-2"}, jais2()},
      {{"exaone-moe"}, {exaone_moe()}},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
       {gpt4o_like(kContraction + "?", R"(\p{N}{1,3})")}},
      {{"granite-embed-multi-97m"}, {gpt4o_like(kContraction + "?", R"(\p{N}{1,3})")}, true},
      {{"tiny_aya", "cohere2moe"},
       {std::string(kDigitGroups), gpt4o_like(kContraction + "?", R"(\p{N}{1,3})")}},
      {{"tekken"}, {gpt4o_like("", R"(\p{N})")}, true},
      {{"kimi-k2"}, {kimi_k2()}},
      {{"deepseek-llm"}, deepseek_llm()},
      {{"deepseek-coder"}, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjkOfDeepseek, R"(\p{N})"}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, deepseek_v3()},
      {{"spark2_5"},
       {R"(\p{N}{1,3})", kHanAndKana, deepseek_v3_words(R"( ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)"),
        R"(\p{N})"}},
      {{"youtu"}, youtu(), true},
      {{"afmoe"}, afmoe()},
      {{"superbpe"}, {R"(\p{N}+)", std::string(kDigitCuts)}},
      {{"chameleon"}, chameleon()},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {kBloom}},
      {{"viking"}, {kBloom, R"(\p{N})"}},
      {{"gemma4", "granite-embed-multi-311m", "sarvam-moe"}, {R"([^\n]+|[\n]+)"}, false, true},
  };
}

}  // namespace

std::span<const PreTokenizerRules> all_pre_tokenizer_rules() {
  static const std::vector<PreTokenizerRules> rules = make_rules();
  return rules;
}

}  // namespace assay::tokenizer_internal
