// Grammars on their own: a JSON schema made into masks over a toy vocabulary, and a document drawn through
// them by chance: whatever is drawn is valid. Usage: grammar_alone [seed]
#include <boost/json/parse.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/random.h"
#include "grammar/json_schema.h"
#include "grammar/token_grammar.h"

int main(int argc, char** argv) {
  using namespace assay::grammar;
  const auto schema = boost::json::parse(R"({"type": "object", "properties": {
      "city": {"enum": ["Paris", "Oslo", "Lima"]}, "degrees": {"type": "integer", "minimum": -30, "maximum": 45},
      "sky": {"type": "string", "pattern": "^(clear|cloudy)$"}}, "required": ["city", "degrees"]})");
  auto automaton = compile_json_schema(schema);
  if (!automaton) {
    std::fprintf(stderr, "%s\n", automaton.error().message().c_str());
    return 1;
  }
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  for (const char* text :
       {"{\"", "\": ", "\":", "Par", "is", "city", "clear", "10", "\", \"", "\"}", "deg", "rees"})
    texts.emplace_back(text);
  const auto end = static_cast<int32_t>(texts.size());
  texts.emplace_back("<end>");
  TokenGrammar grammar(std::move(*automaton),
                       std::make_shared<const TokenTrie>(texts, std::vector<int32_t>{end}));

  assay::Random random(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1);
  auto position = grammar.start();
  std::string document;
  for (TokenMask mask(grammar.trie().n_mask_words());;) {
    if (const auto masked = grammar.mask(position, mask); !masked) return 1;
    std::vector<int32_t> allowed;
    for (int32_t id = 0; id <= end; ++id)
      if ((mask[static_cast<size_t>(id) / 64] >> (id % 64) & 1U) != 0) allowed.push_back(id);
    const int32_t chosen = allowed[random.below(allowed.size())];
    if (chosen == end) break;
    if (!grammar.advance(position, chosen)) return 1;
    document += texts[static_cast<size_t>(chosen)];
    std::printf("%3zu allowed, drew '%s'\n", allowed.size(), texts[static_cast<size_t>(chosen)].c_str());
  }
  std::printf("%s\n", document.c_str());
  boost::json::error_code error;
  boost::json::parse(document, error);
  return error ? 1 : 0;
}
