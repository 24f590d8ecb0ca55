// Time to compile a schema and to mask one step, by vocabulary. A mask bench needs a vocabulary of real size:
// this one is made up: words of random syllables with and without a space before them, JSON's punctuation in
// all usual combinations, and all bytes. The bound of a mask:
// a step of 16 sequences at 50 ms should lose less than a hundredth of it, 31 us a sequence; the first time
// that a grammar meets a state, 1 ms.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/figures.h"
#include "grammar/json_schema.h"
#include "grammar/token_grammar.h"

namespace {

using namespace assay;
using namespace assay::grammar;

std::shared_ptr<const TokenTrie> vocabulary_of(size_t n_tokens) {
  Random random(1, "vocabulary");
  std::set<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace(1, static_cast<char>(byte));
  const std::string marks[] = {"{",  "}",  "[",  "]", "\"", ":", ",", " ",
                               "\n", "  ", "\\", "'", ".",  "-", "0", "1"};
  for (const std::string& a : marks)
    for (const std::string& b : marks)
      for (const std::string& c : marks) texts.insert(a + b + c);
  for (int number = 0; number < 1000; ++number) texts.insert(std::to_string(number));
  const std::string syllables[] = {"ta", "in", "er", "qu", "on", "st", "re", "lo", "mi",
                                   "ch", "ex", "po", "al", "é",  "ü",  "日", "ю"};
  while (texts.size() < n_tokens) {
    std::string word = random.below(2) == 0 ? " " : "";
    for (uint64_t n = 1 + random.below(5); n > 0; --n) word += syllables[random.below(17)];
    if (random.below(20) == 0) word += marks[random.below(16)];
    texts.insert(word);
  }
  std::vector<std::string> list(texts.begin(), texts.end());
  list.emplace_back("<end>");
  return std::make_shared<const TokenTrie>(list, std::vector<int32_t>{static_cast<int32_t>(list.size() - 1)});
}

struct Case {
  const char* name;
  const char* schema;  // null: any object
};
const Case kCases[] = {
    {"person",
     R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150},
      "email":{"type":"string","format":"email"},"tags":{"type":"array","items":{"type":"string"},"maxItems":5},
      "status":{"enum":["active","inactive","pending"]}},"required":["name","age","email","tags","status"],
      "additionalProperties":false})"},
    {"bounded strings",
     R"({"type":"array","items":{"type":"string","minLength":3,"maxLength":40},"minItems":3})"},
    {"recursive",
     R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"number"},"label":{"type":"string"},
      "children":{"type":"array","items":{"$ref":"#/$defs/n"}}},"required":["v","label","children"]}}})"},
    {"json_object", nullptr},
};

Result<Automaton> compile(const Case& c) {
  return c.schema == nullptr ? compile_json_object() : compile_json_schema(boost::json::parse(c.schema));
}

struct Times {
  double first_seconds = 0, worst_seconds = 0;  // a fresh grammar
  double later_seconds = 0;                     // the same grammar, other documents
  int n_first = 0, n_later = 0;
};

// One document of up to n_steps tokens: the mean time of a mask and an advance.
double walk(TokenGrammar& grammar, uint64_t seed, int n_steps, int& n_done, double& worst) {
  using Clock = std::chrono::steady_clock;
  Random random(seed, "walk");
  TokenMask mask(grammar.trie().n_mask_words());
  double total = 0;
  auto position = grammar.start();
  for (n_done = 0; n_done < n_steps; ++n_done) {
    const auto start = Clock::now();
    if (!grammar.mask(position, mask)) std::exit(1);
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    // A random token of those allowed, rarely one that opens or closes something, so that strings get some
    // length.
    int32_t chosen = -1;
    for (int tries = 0; tries < 100'000 && chosen < 0; ++tries) {
      const auto id = static_cast<int32_t>(random.below(static_cast<uint64_t>(grammar.trie().n_tokens())));
      if ((mask[static_cast<size_t>(id) / 64] >> (id % 64) & 1U) != 0) chosen = id;
    }
    for (int32_t id = 0; chosen < 0 && id < grammar.trie().n_tokens(); ++id)
      if ((mask[static_cast<size_t>(id) / 64] >> (id % 64) & 1U) != 0) chosen = id;
    if (chosen < 0 || grammar.trie().is_end(chosen)) break;
    const auto again = Clock::now();
    if (!grammar.advance(position, chosen)) std::exit(1);
    seconds += std::chrono::duration<double>(Clock::now() - again).count();
    total += seconds;
    worst = std::max(worst, seconds);
  }
  return total;
}

Times measure(const Case& c, const std::shared_ptr<const TokenTrie>& trie) {
  constexpr int kGrammars = 5, kDocuments = 20, kSteps = 100;
  Times times;
  std::vector<double> first, worst, later;
  for (int g = 0; g < kGrammars; ++g) {
    TokenGrammar grammar(std::move(*compile(c)), trie);
    int n = 0;
    double slowest = 0, ignored = 0;
    const double fresh = walk(grammar, static_cast<uint64_t>(g), kSteps, n, slowest);
    first.push_back(fresh / std::max(n, 1));
    worst.push_back(slowest);
    times.n_first += n;
    for (int d = 1; d <= kDocuments; ++d) {
      const double seconds = walk(grammar, static_cast<uint64_t>(g * 1000 + d), kSteps, n, ignored);
      if (n > 0) later.push_back(seconds / n);
      times.n_later += n;
    }
  }
  const auto median = [](std::vector<double>& values) {
    std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
    return values[values.size() / 2];
  };
  times.first_seconds = median(first);
  times.worst_seconds = median(worst);
  times.later_seconds = median(later);
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace assay::bench;
  std::vector<Figure> figures;
  for (const Case& c : kCases) {
    const double seconds = median_seconds(9, [&] {
      if (!compile(c)) std::exit(1);
    });
    figures.push_back({fmt::format("compile: {}", c.name), seconds * 1e6, "us", std::nullopt, Better::kLower,
                       9, "median of batches of at least 20 ms, schema text to automaton"});
  }
  for (const size_t n_tokens : {size_t{49'152}, size_t{151'936}}) {
    const auto trie = vocabulary_of(n_tokens);
    const auto row = [&](std::string figure, double seconds, std::optional<double> bound, int samples,
                         const char* how) {
      figures.push_back({fmt::format("{} tokens: {}", n_tokens, figure), seconds * 1e6, "us", bound,
                         Better::kLower, samples, how});
    };
    for (const Case& c : kCases) {
      const Times times = measure(c, trie);
      const bool small = n_tokens < 100'000;
      row(fmt::format("{}: a step, first document", c.name), times.first_seconds,
          small ? std::optional(1000.0) : std::nullopt, times.n_first,
          "median over 5 fresh grammars of the mean over a document of up to 100 tokens, mask and advance");
      row(fmt::format("{}: slowest step", c.name), times.worst_seconds, std::nullopt, times.n_first,
          "median over 5 fresh grammars");
      row(fmt::format("{}: a step, later documents", c.name), times.later_seconds,
          small ? std::optional(250.0) : std::nullopt, times.n_later,
          "median over 100 other documents of the mean of their steps");
    }
  }
  return print(figures, wants_json(argc, argv));
}
