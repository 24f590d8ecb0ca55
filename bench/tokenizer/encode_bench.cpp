// How fast text becomes ids and back, on the WikiText-2 validation text ($ASSAY_SHARED_DATA/corpus).
//   encode_bench [--json]
// The vocabulary is a byte-level BPE of 1,000 merges learned here from that text, so that the bench needs no
// model file. Each figure is the best of five runs over the whole text, on one thread.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace {

using assay::VocabSpec;

struct Word {
  std::vector<std::string> symbols;
  size_t count = 0;
};

// The most frequent words of the text, spelled in bytes.
std::vector<Word> frequent_words(const std::string& text, size_t limit) {
  const auto rules = assay::tokenizer_internal::find_pre_tokenizer_rules("gpt-2").value();
  const auto pre_tokenizer = assay::tokenizer_internal::PreTokenizer::create(rules->patterns).value();
  std::vector<size_t> ends;
  pre_tokenizer.split(text, ends);
  std::unordered_map<std::string, size_t> counts;
  size_t begin = 0;
  for (const size_t end : ends) ++counts[text.substr(begin, end - begin)], begin = end;
  std::vector<Word> words;
  for (const auto& [word, count] : counts) {
    Word& entry = words.emplace_back(Word{{}, count});
    for (const char byte : word) {
      entry.symbols.emplace_back(assay::tokenizer_internal::spell_byte(static_cast<uint8_t>(byte)));
    }
  }
  std::ranges::sort(words, [](const Word& a, const Word& b) {
    return a.count != b.count ? a.count > b.count : a.symbols < b.symbols;
  });
  words.resize(std::min(limit, words.size()));
  return words;
}

using Pair = std::pair<std::string, std::string>;

Pair most_frequent_pair(const std::vector<Word>& words) {
  std::map<Pair, size_t> counts;
  for (const Word& word : words) {
    for (size_t i = 0; i + 1 < word.symbols.size(); ++i)
      counts[{word.symbols[i], word.symbols[i + 1]}] += word.count;
  }
  return std::ranges::max_element(counts, {}, &std::pair<const Pair, size_t>::second)->first;
}

void apply(const Pair& pair, std::vector<Word>& words) {
  for (Word& word : words) {
    for (size_t i = 0; i + 1 < word.symbols.size(); ++i) {
      if (word.symbols[i] != pair.first || word.symbols[i + 1] != pair.second) continue;
      word.symbols[i] += pair.second;
      word.symbols.erase(word.symbols.begin() + static_cast<ptrdiff_t>(i) + 1);
    }
  }
}

VocabSpec learn(const std::string& text, int merges) {
  VocabSpec spec;
  spec.pre_tokenizer = "gpt-2";
  for (int byte = 0; byte < 256; ++byte) {
    spec.tokens.emplace_back(assay::tokenizer_internal::spell_byte(static_cast<uint8_t>(byte)));
  }
  std::vector<Word> words = frequent_words(text, 3000);
  for (int i = 0; i < merges; ++i) {
    const Pair pair = most_frequent_pair(words);
    spec.merges.push_back(pair.first + " " + pair.second);
    if (std::ranges::find(spec.tokens, pair.first + pair.second) == spec.tokens.end()) {
      spec.tokens.push_back(pair.first + pair.second);
    }
    apply(pair, words);
  }
  return spec;
}

template <class Run>
double best_seconds(const Run& run) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {}
  void add(const std::string& figure, double value, const std::string& unit) {
    if (json_) {
      std::printf(
          "%s{\"figure\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", \"bound\": null, \"holds\": null, "
          "\"samples\": 5, \"how\": \"best run over WikiText-2 validation, one thread\"}",
          first_ ? "[\n" : ",\n", figure.c_str(), value, unit.c_str());
    } else {
      std::printf("%-32s %10.4g %s\n", figure.c_str(), value, unit.c_str());
    }
    first_ = false;
  }
  void finish() const {
    if (json_) std::printf("\n]\n");
  }

 private:
  bool json_;
  bool first_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  const char* folder = std::getenv("ASSAY_SHARED_DATA");
  const std::string path =
      std::string(folder == nullptr ? "../shared/data" : folder) + "/corpus/wikitext2-valid.txt";
  const auto text = assay::read_file(path);
  if (!text) {
    std::fprintf(stderr, "%s (set ASSAY_SHARED_DATA)\n", text.error().message().c_str());
    return 1;
  }
  const double megabytes = static_cast<double>(text->size()) / 1e6;
  const VocabSpec spec = learn(*text, 1000);
  Report report(argc > 1 && std::strcmp(argv[1], "--json") == 0);
  std::vector<int32_t> ids;
  for (const char* name : {"gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o", "deepseek-v3"}) {
    VocabSpec variant = spec;
    variant.pre_tokenizer = name;
    const auto tokenizer = assay::Tokenizer::create(std::move(variant)).value();
    report.add(std::string("encode, ") + name,
               megabytes / best_seconds([&] { ids = tokenizer.encode(*text); }), "MB/s");
  }
  const auto tokenizer = assay::Tokenizer::create(spec).value();
  ids = tokenizer.encode(*text);
  std::string decoded;
  report.add("decode", megabytes / best_seconds([&] { decoded = tokenizer.decode(ids); }), "MB/s");
  report.add("create", best_seconds([&] { (void)assay::Tokenizer::create(spec); }) * 1e3, "ms");
  report.finish();
  return decoded == *text ? 0 : 1;
}
