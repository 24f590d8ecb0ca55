// Schemas made to cost time or memory: each ends with a clear error or a working grammar, within the budgets.
// The budgets count states and steps, not seconds, so that the outcome is the same on every machine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "grammar/sampling.h"

namespace assay::grammar {
namespace {

namespace json = boost::json;

Result<Automaton> compile(const std::string& schema) {
  return compile_json_schema(json::parse(schema, {}, {.max_depth = 10'000}));
}

void expect_exhausted(const std::string& schema) {
  const auto compiled = compile(schema);
  ASSERT_FALSE(compiled.has_value()) << schema.substr(0, 200);
  EXPECT_EQ(compiled.error().code, ErrorCode::kResourceExhausted) << compiled.error().message();
}

// A document can be drawn, so that masks work too.
void expect_usable(const std::string& schema) {
  const auto grammar = testing::grammar_of(compile(schema));
  ASSERT_NE(grammar, nullptr) << schema.substr(0, 200);
  Random random(1, "hostile");
  EXPECT_TRUE(testing::sample(*grammar, random, 20).has_value());
}

std::string repeated(int n, const std::string& part, const std::string& separator) {
  std::string all;
  for (int i = 0; i < n; ++i) all += (i == 0 ? "" : separator) + part;
  return all;
}

TEST(HostileSchema, deep_nesting_is_bounded) {
  std::string schema = R"({"type":"null"})";
  for (int i = 0; i < 500; ++i) schema = R"({"type":"array","items":)" + schema + "}";
  // Documents nest 32 deep at most; empty arrays end earlier.
  expect_usable(schema);
  std::string needs = R"({"type":"null"})";
  for (int i = 0; i < 40; ++i) needs = R"({"type":"array","minItems":1,"items":)" + needs + "}";
  EXPECT_FALSE(compile(needs).has_value());
  std::string in_place = R"({"type":"integer"})";
  for (int i = 0; i < 2000; ++i) in_place = R"({"allOf":[)" + in_place + "]}";
  expect_usable(in_place);
}

TEST(HostileSchema, branching_that_multiplies_is_bounded) {
  // Two equal branches at each of 24 levels: as sets they are one.
  std::string defs = R"("d0":{"type":"integer"})";
  for (int i = 1; i <= 24; ++i)
    defs += fmt::format(R"(,"d{}":{{"anyOf":[{{"$ref":"#/$defs/d{}"}},{{"$ref":"#/$defs/d{}"}}]}})", i, i - 1,
                        i - 1);
  const auto chained = compile(R"({"$ref":"#/$defs/d24","$defs":{)" + defs + "}}");
  EXPECT_TRUE(chained.has_value() || chained.error().code == ErrorCode::kResourceExhausted);
  // Independent choices: 2^20 combinations.
  expect_exhausted(R"({"allOf":[)" + repeated(20, R"({"anyOf":[{"minimum":1},{"maximum":0}]})", ",") + "]}");
  // The same deep in a list of properties.
  std::string properties;
  for (int i = 0; i < 200; ++i)
    properties +=
        fmt::format(R"({}"p{}":{{"allOf":[{}]}})", i == 0 ? "" : ",", i,
                    repeated(10, fmt::format(R"({{"anyOf":[{{"minimum":{}}},{{"maximum":0}}]}})", i), ","));
  expect_exhausted(R"({"type":"object","properties":{)" + properties + "}}");
  // A recursive value whose conjunctions grow.
  const auto growing = compile(
      R"({"$defs":{"a":{"type":"object","properties":{"x":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]}}},
          "b":{"type":"object","properties":{"x":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]}}}},"$ref":"#/$defs/a"})");
  EXPECT_TRUE(growing.has_value() || growing.error().code == ErrorCode::kResourceExhausted);
}

TEST(HostileSchema, long_lists_are_bounded) {
  std::string values;
  for (int i = 0; i < 1000; ++i) values += fmt::format("{}\"value number {}\"", i == 0 ? "" : ",", i);
  expect_usable(R"({"enum":[)" + values + "]}");
  expect_exhausted(R"({"enum":[)" + repeated(30'000, "1", ",") + "]}");
  std::string long_values;
  for (int i = 0; i < 20; ++i)
    long_values += fmt::format("{}\"{}{}\"", i == 0 ? "" : ",", i, std::string(50'000, 'x'));
  expect_exhausted(R"({"enum":[)" + long_values + "]}");
  std::string properties;
  for (int i = 0; i < 1500; ++i)
    properties += fmt::format(R"({}"property_{}":{{"type":"integer"}})", i == 0 ? "" : ",", i);
  expect_usable(R"({"type":"object","properties":{)" + properties + "}}");
  expect_exhausted(R"({"anyOf":[)" + repeated(25'000, R"({"type":"null"})", ",") + "]}");
  expect_exhausted(R"({"type":"object","properties":{")" + std::string(1 << 20, 'k') + R"(":{}}})");
}

TEST(HostileSchema, large_counts_cost_nothing) {
  expect_usable(R"({"type":"string","maxLength":1000000000})");
  expect_usable(R"({"type":"array","items":{"type":"array","maxItems":1000000000},"maxItems":999999999})");
  const auto grammar = testing::grammar_of_schema(R"({"type":"string","minLength":100000})");
  EXPECT_FALSE(testing::accepts(*grammar, "\"" + std::string(99'999, 'x') + "\""));
  EXPECT_TRUE(testing::accepts(*grammar, "\"" + std::string(100'000, 'x') + "\""));
  expect_exhausted(R"({"type":"string","pattern":"^a*$","maxLength":1000000})");
}

TEST(HostileSchema, patterns_are_bounded) {
  expect_exhausted(R"x({"type":"string","pattern":"(a|b)*a(a|b){30}"})x");
  expect_exhausted(
      R"x({"allOf":[{"pattern":"(a|b)*a(a|b){9}x"},{"pattern":"(b|c)*b(b|c){9}y"},{"pattern":"(c|d)*c(c|d){9}z"}]})x");
  expect_usable(R"x({"type":"string","pattern":"^(a+)+$"})x");
}

// Each pattern alone is within the bounds; the work of all together is bounded too.
TEST(HostileSchema, many_costly_patterns_share_one_budget) {
  std::string properties;
  for (int i = 0; i < 500; ++i)
    properties += fmt::format(R"x({}"p{}":{{"type":"string","pattern":"(a|b)*a(a|b){{9}}x{}"}})x",
                              i == 0 ? "" : ",", i, i);
  expect_exhausted(R"({"type":"object","properties":{)" + properties + "}}");
}

TEST(HostileSchema, reference_chains_are_bounded) {
  std::string defs;
  for (int i = 0; i < 5000; ++i) defs += fmt::format(R"("d{}":{{"$ref":"#/$defs/d{}"}},)", i, i + 1);
  expect_usable(R"({"$ref":"#/$defs/d0","$defs":{)" + defs + R"("d5000":{"type":"boolean"}}})");
  std::string loop;
  for (int i = 0; i < 5000; ++i)
    loop += fmt::format(R"({}"d{}":{{"$ref":"#/$defs/d{}"}})", i == 0 ? "" : ",", i, (i + 1) % 5000);
  EXPECT_EQ(compile(R"({"$ref":"#/$defs/d0","$defs":{)" + loop + "}}").error().code,
            ErrorCode::kInvalidArgument);
}

TEST(HostileSchema, exclusive_alternatives_are_checked_within_a_budget) {
  std::string alternatives;
  for (int i = 0; i < 60; ++i)
    alternatives +=
        fmt::format(R"({}{{"type":"object","properties":{{"kind":{{"const":"k{}"}}}},"required":["kind"]}})",
                    i == 0 ? "" : ",", i);
  expect_usable(R"({"oneOf":[)" + alternatives + "]}");
  std::string defs = R"("d0":{"type":"integer"})";
  for (int i = 1; i <= 24; ++i)
    defs += fmt::format(R"(,"d{}":{{"anyOf":[{{"$ref":"#/$defs/d{}"}},{{"$ref":"#/$defs/d{}"}}]}})", i, i - 1,
                        i - 1);
  EXPECT_FALSE(compile(R"({"oneOf":[{"$ref":"#/$defs/d24"},{"$ref":"#/$defs/d23"}],"$defs":{)" + defs + "}}")
                   .has_value());
}

// Random JSON and broken schemas: an error or a grammar that can be walked.
TEST(HostileSchema, random_changes_never_break_anything) {
  const char* const seeds[] = {
      R"({"type":"object","properties":{"a":{"type":"string","pattern":"^a+$","maxLength":5},"b":{"enum":[1,"x",null]}},
          "required":["a"],"additionalProperties":{"type":"integer","minimum":0}})",
      R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"number","maximum":2.5}]},
          "maxItems":3}}})",
      R"({"oneOf":[{"type":"string","format":"date"},{"type":"integer","exclusiveMaximum":-3}]})"};
  int usable = 0;
  for (uint64_t seed = 0; seed < 8000; ++seed) {
    Random random(seed, "schemas");
    std::string text = seeds[seed % 3];
    for (uint64_t i = 0; i <= random.below(2); ++i) {
      const size_t at = random.below(text.size());
      if (random.below(3) == 0) {
        text.erase(at, 1 + random.below(3));
      } else {
        text[at] = "{}[]\",:0123456789-.aetrufls$#/"[random.below(30)];
      }
    }
    json::error_code error;
    const json::value schema = json::parse(text, error);
    if (error) continue;
    auto compiled = compile_json_schema(schema);
    if (!compiled) {
      EXPECT_FALSE(compiled.error().what.empty());
      continue;
    }
    TokenGrammar grammar(std::move(*compiled), testing::awkward_vocabulary());
    Random draws(seed, "draws");
    const auto document = testing::sample(grammar, draws, 15);
    ASSERT_TRUE(document.has_value()) << text;
    json::parse(*document, error);
    EXPECT_FALSE(error) << text << "\n" << *document;
    ++usable;
  }
  EXPECT_GT(usable, 50);
}

}  // namespace
}  // namespace assay::grammar
