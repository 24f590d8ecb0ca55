#include "serve/json_body.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>

#include "base/random.h"

namespace assay {
namespace {

namespace json = boost::json;

std::string code_of(std::string_view body, int depth = 32) {
  const auto parsed = parse_json_body(body, depth);
  return parsed ? "" : parsed.error().code;
}

// A random document and its text, with white space and escapes; names are distinct unless `doubled` says
// where.
json::value make_value(Random& random, int depth) {
  switch (random.below(depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return random.below(2) == 0;
    case 2:
      return static_cast<int64_t>(random.below(1U << 30)) - (1 << 29);
    case 3:
      return static_cast<double>(random.below(1000)) / 8;
    case 4:
      return json::string(std::string(random.below(20), 'a') + "\"\\\n\x01\xc3\xa9");
    case 5:
      return uint64_t{0xffffffffffffff00} + random.below(255);
    case 6: {
      json::array array;
      for (size_t i = random.below(5); i > 0; --i) array.push_back(make_value(random, depth - 1));
      return array;
    }
    default: {
      json::object object;
      for (size_t i = random.below(6); i > 0; --i) {
        object[std::string("k") + std::to_string(random.below(100))] = make_value(random, depth - 1);
      }
      return object;
    }
  }
}

TEST(JsonBody, reads_what_the_library_reads) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed, "json");
    json::object object;
    for (size_t i = random.below(6); i > 0; --i) {
      object[std::string("n") + std::to_string(random.below(50))] = make_value(random, 5);
    }
    const std::string text = json::serialize(object);
    const auto parsed = parse_json_body(" \n" + text + "\t ", 32);
    ASSERT_TRUE(parsed.has_value()) << text << ": " << parsed.error().message;
    EXPECT_EQ(json::value(*parsed), json::parse(text)) << text;
  }
}

TEST(JsonBody, doubled_names_are_refused_wherever_they_are_and_named) {
  struct Case {
    const char* body;
    const char* name;
  };
  for (const Case& c : {
           Case{R"({"a":1,"a":1})", "\"a\""},
           Case{R"({"a":1,"b":{"c":[{"d":1,"e":2,"d":3}]}})", "\"d\""},
           Case{R"({"a":{"x":1,"x":{"y":1}}})", "\"x\""},
           Case{R"({"":1,"":2})", "\"\""},
           Case{R"({"a\u0062":1,"ab":2})", "\"ab\""},      // the same name in another spelling
           Case{R"({"a":{"a":1},"a":{"a":2}})", "\"a\""},  // also where the lost value held names of its own
           Case{R"({"a":{"b":1,"c":2},"a":3,"d":4})", "\"a\""},
       }) {
    const auto parsed = parse_json_body(c.body, 32);
    ASSERT_FALSE(parsed.has_value()) << c.body;
    EXPECT_EQ(parsed.error().code, "invalid_json");
    EXPECT_NE(parsed.error().message.find(c.name), std::string::npos) << parsed.error().message;
  }
  // The same name in different objects is no doubling.
  EXPECT_EQ(code_of(R"({"a":{"a":1},"b":[{"a":1},{"a":2}]})"), "");
}

TEST(JsonBody, doubling_one_random_name_is_always_found) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, "doubled");
    json::object object;
    for (size_t i = 1 + random.below(5); i > 0; --i) {
      object[std::string("n") + std::to_string(random.below(50))] = make_value(random, 4);
    }
    const std::string text = json::serialize(object);
    const std::string name = json::serialize(json::string(object.begin()->key()));
    const std::string doubled =
        "{" + name + ":" + json::serialize(make_value(random, 3)) + "," + text.substr(1);
    EXPECT_EQ(code_of(doubled), "invalid_json") << doubled;
    EXPECT_EQ(code_of(R"({"in":[)" + doubled + "]}"), "invalid_json") << doubled;
  }
}

TEST(JsonBody, depth_is_bounded_exactly) {
  for (const int depth : {8, 32, 200}) {
    // The outer object is one level, the arrays are the others.
    const auto nested = [](int levels) {
      return "{\"a\":" + std::string(static_cast<size_t>(levels - 1), '[') +
             std::string(static_cast<size_t>(levels - 1), ']') + "}";
    };
    EXPECT_EQ(code_of(nested(depth), depth), "");
    EXPECT_EQ(code_of(nested(depth + 1), depth), "json_too_deep");
    EXPECT_EQ(code_of(std::string(1 << 20, '['), depth), "json_too_deep");
  }
}

TEST(JsonBody, everything_else_is_invalid) {
  for (const char* body : {"",
                           " ",
                           "{",
                           "}",
                           "[]",
                           "1",
                           "\"a\"",
                           "null",
                           "{} {}",
                           "{}x",
                           "{\"a\":1,}",
                           "{'a':1}",
                           "{a:1}",
                           "{\"a\":NaN}",
                           "{\"a\":Infinity}",
                           "{\"a\":01}",
                           "{\"a\":+1}",
                           "{\"a\":.5}",
                           "{\"a\":1.}",
                           "{\"a\":0x1}",
                           "\xef\xbb\xbf{}",
                           "{\"a\":\"\xff\"}",
                           "{\"a\":\"\xc0\x80\"}",
                           "{\"a\":\"\xed\xa0\x80\"}",
                           "{\"a\":\"\\ud800\"}",
                           "{\"a\":\"\\udc00\"}",
                           "{\"a\":\"\\x\"}",
                           "{\"a\":\"\n\"}",
                           "{\"a\" 1}",
                           "// c\n{}",
                           "{/**/}"}) {
    EXPECT_EQ(code_of(body), "invalid_json") << body;
  }
  using namespace std::string_view_literals;
  EXPECT_EQ(code_of("{}\0"sv), "invalid_json");
  EXPECT_EQ(code_of("{\"a\":\"\0\"}"sv), "invalid_json");
  EXPECT_EQ(code_of("{}"), "");
}

}  // namespace
}  // namespace assay
