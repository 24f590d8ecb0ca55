// A JSON schema from any bytes, and a document drawn from its grammar by the bytes that follow a NUL: no
// crash, no dead end, and what is drawn is JSON that the schema's own validity check accepts.
#include <boost/json/parse.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/json_schema.h"
#include "grammar/schema.h"
#include "grammar/token_grammar.h"

namespace {

using namespace assay::grammar;

const std::shared_ptr<const TokenTrie>& bytes_only() {
  static const auto trie = [] {
    std::vector<std::string> texts;
    for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
    texts.emplace_back("<end>");
    return std::make_shared<const TokenTrie>(texts, std::vector<int32_t>{256});
  }();
  return trie;
}

void draw(TokenGrammar& grammar, std::string_view choices, std::string& document) {
  auto position = grammar.start();
  TokenMask mask(grammar.trie().n_mask_words());
  for (size_t step = 0; step < 20'000; ++step) {
    if (!grammar.mask(position, mask)) return;
    // The wanted byte or the next one allowed; when the choices are used up, what closes.
    const bool hurry = step >= choices.size();
    const uint32_t wanted = hurry ? 256 : static_cast<uint8_t>(choices[step]);
    const auto allowed = [&](uint32_t id) { return (mask[id / 64] >> (id % 64) & 1U) != 0; };
    uint32_t chosen = 257;
    if (hurry)
      for (const uint32_t id : {256U, 34U, 125U, 93U})
        if (chosen == 257 && allowed(id)) chosen = id;
    for (uint32_t i = 0; chosen == 257 && i < 257; ++i)
      if (allowed((wanted + i) % 257)) chosen = (wanted + i) % 257;
    if (chosen == 257) std::abort();  // a dead end
    if (chosen == 256) return;
    if (!grammar.advance(position, static_cast<int32_t>(chosen))) std::abort();
    document += static_cast<char>(chosen);
  }
  document.clear();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  boost::json::error_code error;
  const auto schema = boost::json::parse(input.substr(0, end), error);
  if (error) return 0;
  auto automaton = compile_json_schema(schema);
  if (!automaton) return 0;
  TokenGrammar grammar(std::move(*automaton), bytes_only());
  std::string document;
  draw(grammar, end < size ? input.substr(end + 1) : std::string_view(), document);
  if (document.empty()) return 0;
  const auto value = boost::json::parse(document, error);
  if (error) std::abort();
  WorkBudget budget;
  const auto parsed = Schema::parse(schema, budget);
  if (!parsed || !ValueMatcher(*parsed).matches(0, value)) std::abort();
  return 0;
}
