#include "grammar/json_schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <tuple>

#include "base/temporary_directory.h"
#include "grammar/sampling.h"

namespace assay::grammar {
namespace {

namespace json = boost::json;

using testing::accepts;
using testing::grammar_of;
using testing::grammar_of_schema;

json::value recorded_documents() {
  std::ifstream file(ASSAY_SOURCE_DIR "/tests/grammar/data/documents.json");
  std::ostringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

// The verdicts are jsonschema's (oracle/make_documents.py).
TEST(JsonSchema, recorded_documents_are_judged_as_by_jsonschema) {
  int accepted = 0, rejected = 0;
  const json::value recorded = recorded_documents();
  for (const json::value& entry : recorded.as_array()) {
    const auto grammar = grammar_of(compile_json_schema(entry.at("schema")));
    ASSERT_NE(grammar, nullptr) << json::serialize(entry.at("schema"));
    for (const json::value& document : entry.at("documents").as_array()) {
      const std::string_view text = document.at("text").as_string();
      const bool valid = document.at("valid").as_bool(), drawn = document.at("drawn").as_bool();
      const bool found = accepts(*grammar, text);
      // Valid ones that were not drawn may lie outside of what the grammar promises.
      EXPECT_TRUE(found == valid || (valid && !drawn)) << json::serialize(entry.at("schema")) << "\n" << text;
      accepted += valid && drawn ? 1 : 0;
      rejected += valid ? 0 : 1;
    }
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(rejected, 300);
}

// Whatever the masks lead to is valid, by jsonschema itself where it is installed, and is JSON in any case.
TEST(JsonSchema, documents_drawn_from_masks_are_valid) {
  json::array cases;
  const json::value recorded = recorded_documents();
  for (const json::value& entry : recorded.as_array()) {
    const auto grammar = grammar_of(compile_json_schema(entry.at("schema")));
    json::array texts;
    for (uint64_t seed = 0; seed < 40; ++seed) {
      Random random(seed, json::serialize(entry.at("schema")));
      const auto text = testing::sample(*grammar, random, seed % 4 == 0 ? 5 : 40);
      ASSERT_TRUE(text.has_value()) << json::serialize(entry.at("schema"));
      json::error_code error;
      json::parse(*text, error, {}, {.max_depth = kMaxDepth});
      ASSERT_FALSE(error) << error.message() << ": " << *text;
      texts.emplace_back(*text);
    }
    cases.push_back(json::object{{"schema", entry.at("schema")}, {"texts", std::move(texts)}});
  }
  const test::TemporaryDirectory directory;
  const std::string path = (directory / "drawn.json").string();
  std::ofstream(path) << json::serialize(cases);
  const std::string command =
      fmt::format("python3 {}/tests/grammar/oracle/check_documents.py {}", ASSAY_SOURCE_DIR, path);
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127))
    GTEST_SKIP() << "python3 with jsonschema is not there";
  EXPECT_EQ(status, 0);
}

TEST(JsonSchema, white_space_is_allowed_and_limited) {
  const auto grammar =
      grammar_of_schema(R"({"type":"object","properties":{"a":{"type":"array"}},"required":["a"]})");
  for (const char* text : {R"({"a":[]})", R"({"a": [1, 2]})", "{\n  \"a\": [\n    1,\n    2\n  ]\n}",
                           R"({ "a": [ 1 ] })", "{\n\t\"a\": []\n}"})
    EXPECT_TRUE(accepts(*grammar, text)) << text;
  for (const char* text :
       {R"({  "a":[]})", R"({"a" :[]})", R"({"a":  []})", " {\"a\":[]}", "{\"a\":[]} ", "{\n\n\"a\":[]}"})
    EXPECT_FALSE(accepts(*grammar, text)) << text;
  EXPECT_TRUE(accepts(*grammar, "{\n" + std::string(40, ' ') + "\"a\":[]}"));
  EXPECT_FALSE(accepts(*grammar, "{\n" + std::string(41, ' ') + "\"a\":[]}"));
}

TEST(JsonSchema, strings_are_valid_utf8_with_paired_surrogates) {
  const auto grammar = grammar_of_schema(R"({"type":"string"})");
  for (const char* text : {"\"\xC3\xA9\"", "\"\xED\x9F\xBF\"", "\"\xEE\x80\x80\"", "\"\xF4\x8F\xBF\xBF\"",
                           R"("\ud83d\ude00")", R"("\u00e9\uD7FF\/\b")", "\"\x7F\""})
    EXPECT_TRUE(accepts(*grammar, text)) << text;
  for (const char* text :
       {"\"\xC3\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\xF8\x88\x80\x80\x80\"",
        "\"\x80\"", R"("\ud83d")", R"("\ude00")", R"("\ud83dx")", R"("\ud83d\u0041")", R"("\x41")",
        R"("\u12g4")", "\"\n\"", "\"\t\"", "\"\x1F\""})
    EXPECT_FALSE(accepts(*grammar, text)) << text;
}

TEST(JsonSchema, additional_properties_never_repeat_a_named_one) {
  const auto grammar = grammar_of_schema(
      R"({"type":"object","properties":{"ab":{"type":"integer"},"é":{"type":"integer"}},"additionalProperties":{"type":"null"}})");
  for (const char* text : {R"({"ab":1,"é":2,"a":null,"abc":null,"e":null})", R"({"":null})", R"({})"})
    EXPECT_TRUE(accepts(*grammar, text)) << text;
  for (const char* text :
       {R"({"ab":null})", R"({"é":null})", R"({"\u0061b":null})", R"({"ab":1,"ab":2})", R"({"x":1})"})
    EXPECT_FALSE(accepts(*grammar, text)) << text;
}

TEST(JsonSchema, integer_ranges_hold_at_every_bound) {
  Random random(11, "ranges");
  for (int i = 0; i < 60; ++i) {
    const int64_t span = int64_t{1} << random.below(12);
    const int64_t low = random.between(-span, span),
                  high = low + static_cast<int64_t>(random.below(static_cast<uint64_t>(span) + 1));
    const auto grammar =
        grammar_of_schema(fmt::format(R"({{"type":"integer","minimum":{},"maximum":{}}})", low, high));
    for (int64_t value = low - 30; value <= low + 30; ++value)
      EXPECT_EQ(accepts(*grammar, std::to_string(value)), low <= value && value <= high)
          << value << " in " << low << ".." << high;
    for (int64_t value = high - 30; value <= high + 30; ++value)
      EXPECT_EQ(accepts(*grammar, std::to_string(value)), low <= value && value <= high)
          << value << " in " << low << ".." << high;
  }
}

TEST(JsonSchema, number_ranges_hold_for_random_decimals) {
  Random random(12, "decimals");
  int inside = 0;
  for (int i = 0; i < 80; ++i) {
    const auto decimal = [&](int digits) {
      const double scale = std::pow(10.0, digits);
      return std::round(random.uniform(-30, 30) * scale) / scale;
    };
    double low = decimal(static_cast<int>(random.below(4))),
           high = decimal(static_cast<int>(random.below(4)));
    if (low > high) std::swap(low, high);
    const bool open = random.below(2) == 0 && low < high;
    const auto grammar = grammar_of_schema(fmt::format(R"({{"type":"number","{}":{},"{}":{}}})",
                                                       open ? "exclusiveMinimum" : "minimum", low,
                                                       open ? "exclusiveMaximum" : "maximum", high));
    for (int k = 0; k < 200; ++k) {
      const double base = k % 3 == 0 ? low : k % 3 == 1 ? high : decimal(2);
      const std::string text = fmt::format(
          "{:.{}f}", base + random.between(-2, 2) * std::pow(10.0, -static_cast<double>(random.below(5))),
          static_cast<int>(random.below(5)));
      const double value = std::strtod(text.c_str(), nullptr);
      bool expected = open ? low < value && value < high : low <= value && value <= high;
      if (value == 0 && text[0] == '-') expected = false;  // "-0.00": zero has no sign here
      inside += expected ? 1 : 0;
      EXPECT_EQ(accepts(*grammar, text), expected)
          << text << " in " << low << ".." << high << (open ? " open" : "");
    }
  }
  EXPECT_GT(inside, 2000);
}

TEST(JsonSchema, unsupported_keywords_are_refused_with_their_path) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {R"({"not":{}})", "/not", "not"},
      {R"({"type":"object","patternProperties":{"a":{}}})", "/patternProperties", "patternProperties"},
      {R"({"properties":{"a/b":{"if":{}}}})", "/properties/a~1b/if", "if"},
      {R"({"items":{"uniqueItems":true}})", "/items/uniqueItems", "uniqueItems"},
      {R"({"anyOf":[{},{"format":"uri"}]})", "/anyOf/1/format", "uri"},
      {R"({"$ref":"https://example.com/x"})", "/$ref", "#/"},
      {R"({"$ref":"#anchor"})", "/$ref", "#/"},
      {R"({"type":"integer","multipleOf":3})", "/multipleOf", "multipleOf"},
      {R"({"minProperties":1})", "/minProperties", "minProperties"},
      {R"x({"pattern":"(?=a)"})x", "/pattern", "look-around"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "/oneOf", "0 and 1"},
      {R"({"colour":"red"})", "/colour", "colour"},
      {R"({"items":[{}]})", "/items", "prefixItems"},
      {R"({"dependentRequired":{}})", "/dependentRequired", "dependentRequired"},
  };
  for (const auto& [schema, where, word] : cases) {
    const auto compiled = compile_json_schema(json::parse(schema));
    ASSERT_FALSE(compiled.has_value()) << schema;
    EXPECT_EQ(compiled.error().code, ErrorCode::kUnsupported) << schema << compiled.error().message();
    EXPECT_EQ(compiled.error().where, where) << schema;
    EXPECT_NE(compiled.error().what.find(word), std::string::npos) << schema << ": " << compiled.error().what;
  }
}

TEST(JsonSchema, wrong_schemas_are_refused) {
  for (const char* schema : {"5",
                             "null",
                             "[]",
                             R"({"type":"strnig"})",
                             R"({"type":[]})",
                             R"({"type":5})",
                             R"({"enum":[]})",
                             R"({"enum":5})",
                             R"({"properties":[]})",
                             R"({"properties":{"a":5}})",
                             R"({"required":"a"})",
                             R"({"required":[1]})",
                             R"({"minItems":-1})",
                             R"({"minItems":1.5})",
                             R"({"maxLength":"9"})",
                             R"({"anyOf":[]})",
                             R"({"anyOf":{}})",
                             R"x({"pattern":"("})x",
                             R"({"pattern":5})",
                             R"({"$ref":"#/$defs/none"})",
                             R"({"$ref":5})",
                             R"({"minimum":"1"})",
                             R"({"items":5})",
                             R"({"$ref":"#"})",
                             R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})",
                             R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#"}}})"}) {
    const auto compiled = compile_json_schema(json::parse(schema));
    ASSERT_FALSE(compiled.has_value()) << schema;
    EXPECT_EQ(compiled.error().code, ErrorCode::kInvalidArgument)
        << schema << ": " << compiled.error().message();
  }
}

TEST(JsonSchema, schemas_without_documents_are_refused) {
  for (const char* schema :
       {"false", R"({"type":"string","minLength":5,"maxLength":2})",
        R"({"type":"integer","minimum":5,"maximum":4})",
        R"({"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2})",
        R"({"type":"string","enum":[1,2]})", R"({"allOf":[{"type":"string"},{"type":"null"}]})",
        R"({"type":"string","pattern":"^a$","minLength":2})",
        R"({"type":"object","properties":{"a":false},"required":["a"]})",
        R"({"type":"object","properties":{},"additionalProperties":false,"required":["a"]})",
        R"({"type":"array","items":false,"minItems":1})",
        // Recursion without a way out.
        R"({"type":"object","properties":{"next":{"$ref":"#"}},"required":["next"]})",
        R"({"type":"array","items":{"$ref":"#"},"minItems":1})"}) {
    const auto compiled = compile_json_schema(json::parse(schema));
    ASSERT_FALSE(compiled.has_value()) << schema;
    EXPECT_EQ(compiled.error().code, ErrorCode::kInvalidArgument)
        << schema << ": " << compiled.error().message();
  }
}

// Parts that cannot be fulfilled are left out, so that no document runs into them.
TEST(JsonSchema, impossible_parts_are_never_entered) {
  const auto grammar = grammar_of_schema(
      R"({"anyOf":[{"type":"object","properties":{"a":{"type":"integer"},"b":false},"required":["a","b"]},
          {"type":"array","items":false},{"type":"string","enum":[1,"ok"]}]})");
  EXPECT_TRUE(accepts(*grammar, "[]"));
  EXPECT_TRUE(accepts(*grammar, "\"ok\""));
  EXPECT_FALSE(accepts(*grammar, "1"));
  auto position = grammar->start();
  EXPECT_FALSE(grammar->advance_bytes(position, "{"));
  position = grammar->start();
  EXPECT_FALSE(grammar->advance_bytes(position, "[1"));
}

TEST(JsonSchema, documents_nest_up_to_the_limit) {
  const auto grammar = grammar_of(compile_json_object());
  const auto nested = [](size_t depth) {
    std::string text = R"({"a":)";
    for (size_t i = 1; i < depth; ++i) text += "[";
    text += "1";
    for (size_t i = 1; i < depth; ++i) text += "]";
    return text + "}";
  };
  EXPECT_TRUE(accepts(*grammar, nested(kMaxDepth)));
  EXPECT_FALSE(accepts(*grammar, nested(kMaxDepth + 1)));
  EXPECT_FALSE(accepts(*grammar, "[]"));
  const auto list = grammar_of_schema(
      R"({"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"]})");
  std::string text = "null";
  for (uint32_t i = 0; i < kMaxDepth; ++i) text = R"({"next":)" + text + "}";
  EXPECT_TRUE(accepts(*list, text));
  EXPECT_FALSE(accepts(*list, R"({"next":)" + text + "}"));
}

}  // namespace
}  // namespace assay::grammar
