#include "grammar/pattern.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "base/random.h"
#include "grammar/automaton.h"

namespace assay::grammar {
namespace {

Result<CodePointDfa> compiled(std::string_view pattern) {
  WorkBudget budget;
  return compile_pattern(pattern, budget);
}

// std::regex reads the same ECMAScript syntax; on ASCII text it is the oracle.
TEST(Pattern, agrees_with_std_regex_on_random_text) {
  const char* const patterns[] = {"a",
                                  "^a",
                                  "a$",
                                  "^a$",
                                  "^$",
                                  "",
                                  "a|b",
                                  "^a|b$",
                                  "^(a|b)*$",
                                  "^(ab)+$",
                                  "^a{2}$",
                                  "^a{2,}$",
                                  "^a{1,3}b?$",
                                  "[abc]",
                                  "^[^abc]+$",
                                  "^[a-c1-3]*$",
                                  "^\\d+$",
                                  "^\\w+$",
                                  "^\\s$",
                                  "^\\D\\W\\S$",
                                  "^a.c$",
                                  "^(?:a|bc){2}$",
                                  "a*b",
                                  "^(a*)*$",
                                  "^(a|ab)(c|bcd)$",
                                  "^a+?b$",
                                  "\\.",
                                  "^\\[a\\]$",
                                  "^[\\]a]$",
                                  "^[-a]$",
                                  "^[a-]$",
                                  "^\\x61$",
                                  "^\\u0061$",
                                  "(a|b)c",
                                  "^(a?){3}$",
                                  "^[\\d.]+$",
                                  "^-?[0-9]+$",
                                  "b{0}",
                                  "^(|a)b$",
                                  "^a\\/b$"};
  for (const char* pattern : patterns) {
    const auto dfa = compiled(pattern);
    ASSERT_TRUE(dfa.has_value()) << pattern << ": " << dfa.error().message();
    const std::regex oracle(pattern, std::regex::ECMAScript);
    Random random(7, pattern);
    int matched = 0;
    const std::string spelled = pattern, letters = "aaabbbccd1234 .-[]/\n_A" + spelled + spelled + spelled;
    for (int i = 0; i < 20000; ++i) {
      std::string text;
      for (uint64_t n = random.below(6); n > 0; --n) text += letters[random.below(letters.size())];
      const bool expected = std::regex_search(text, oracle);
      matched += expected ? 1 : 0;
      ASSERT_EQ(dfa->matches(text), expected) << pattern << " on '" << text << "'";
    }
    EXPECT_GT(matched, 0) << pattern << " was never matched";
  }
}

TEST(Pattern, characters_are_code_points) {
  EXPECT_TRUE(compiled("^.$")->matches("é"));
  EXPECT_TRUE(compiled("^.$")->matches("😀"));
  EXPECT_FALSE(compiled("^.$")->matches("ab"));
  EXPECT_TRUE(compiled("^[à-ÿ]+$")->matches("éàü"));
  EXPECT_FALSE(compiled("^[à-ÿ]+$")->matches("e"));
  EXPECT_TRUE(compiled("^\\u{1F600}$")->matches("😀"));
  EXPECT_FALSE(compiled("^[^a]$")->matches("a"));
  EXPECT_TRUE(compiled("^[^a]$")->matches("\xEF\xBF\xBF"));
}

TEST(Pattern, what_is_not_regular_is_refused_by_name) {
  const std::pair<const char*, const char*> cases[] = {{"(?=a)", "look-around"},
                                                       {"(?!a)", "look-around"},
                                                       {"(?<=a)b", "look-around"},
                                                       {"(?<!a)b", "look-around"},
                                                       {"(a)\\1", "back-references"},
                                                       {"\\k<n>", "back-references"},
                                                       {"\\bword", "\\b"},
                                                       {"\\p{L}", "\\p"},
                                                       {"a^b", "^ and $"},
                                                       {"(^a)", "^ and $"},
                                                       {"a$b", "^ and $"},
                                                       {"(?i)a", "group"},
                                                       {"a{20000}", "10000"}};
  for (const auto& [pattern, word] : cases) {
    const auto dfa = compiled(pattern);
    ASSERT_FALSE(dfa.has_value()) << pattern;
    EXPECT_EQ(dfa.error().code, ErrorCode::kUnsupported) << pattern;
    EXPECT_NE(dfa.error().what.find(word), std::string::npos) << pattern << ": " << dfa.error().what;
  }
  for (const char* pattern :
       {"(",    ")",  "[",     "[a",      "a)",   "*a",    "+",           "a**",  "a{2,1}", "a{",
        "a{x}", "\\", "[b-a]", "[a-\\d]", "\\x1", "\\u12", "\\u{110000}", "(?<n", "]",      "}"}) {
    const auto dfa = compiled(pattern);
    ASSERT_FALSE(dfa.has_value()) << pattern;
    EXPECT_EQ(dfa.error().code, ErrorCode::kInvalidArgument) << pattern;
  }
}

// The bound is on states and steps, so that the answer comes at once whatever the pattern.
TEST(Pattern, catastrophic_patterns_are_bounded) {
  std::string nested = "a";
  for (int i = 0; i < 60; ++i) nested = "(" + nested + ")+";
  EXPECT_TRUE(compiled("^" + nested + "$").has_value());
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep = "(" + deep + "a)";
  EXPECT_FALSE(compiled(deep).has_value());
  EXPECT_TRUE(compiled("^(a+)+$").has_value());
  EXPECT_TRUE(compiled("(x+x+)+y").has_value());
  for (const char* pattern :
       {"(a|b)*a(a|b){30}", "((a{100}){100}){100}", "(((a{1000})*){1000})*", "^([a-z]?){5000}[a-z]{5000}$"}) {
    const auto dfa = compiled(pattern);
    ASSERT_FALSE(dfa.has_value()) << pattern;
    EXPECT_EQ(dfa.error().code, ErrorCode::kResourceExhausted) << pattern;
  }
  EXPECT_FALSE(compiled(std::string(5000, 'a')).has_value());
}

TEST(CodePointDfa, products_agree_with_their_parts) {
  const auto a = compiled("^[ab]*c?$"), b = compiled("^.{2,3}$");
  const auto lengths = CodePointDfa::of_length(2, 3);
  WorkBudget budget;
  const auto both = intersect(*a, *b, budget), counted = intersect(*a, *lengths, budget),
             without = subtract(*a, *b, budget);
  const std::vector<std::string> texts{"ab", "c", "é"};
  const auto listed = CodePointDfa::of_texts(texts);
  const auto others = subtract(CodePointDfa::everything(), *listed, budget);
  Random random(3, "products");
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint64_t n = random.below(6); n > 0; --n)
      text += random.below(5) == 0 ? "é" : std::string(1, "abc"[random.below(3)]);
    EXPECT_EQ(both->matches(text), a->matches(text) && b->matches(text)) << text;
    EXPECT_EQ(counted->matches(text), a->matches(text) && b->matches(text)) << text;
    EXPECT_EQ(without->matches(text), a->matches(text) && !b->matches(text)) << text;
    const bool is_listed = std::find(texts.begin(), texts.end(), text) != texts.end();
    EXPECT_EQ(listed->matches(text), is_listed) << text;
    EXPECT_EQ(others->matches(text), !is_listed) << text;
  }
  EXPECT_TRUE(intersect(*compiled("^a$"), *compiled("^b$"), budget)->empty());
}

}  // namespace
}  // namespace assay::grammar
