#include "grammar/automaton.h"

#include <gtest/gtest.h>

#include "grammar/sampling.h"

namespace assay::grammar {
namespace {

using testing::accepts;
using testing::grammar_of;

RuleId rule_at(AutomatonBuilder& builder, StateId start) {
  const RuleId rule = builder.add_rule();
  builder.set_start(rule, start);
  return rule;
}

RuleId text_rule(AutomatonBuilder& builder, std::string_view text) {
  const StateId start = builder.add_state();
  builder.set_final(builder.add_text(start, text));
  return rule_at(builder, start);
}

TEST(Automaton, recursion_matches_what_no_finite_automaton_can) {
  AutomatonBuilder builder;  // S = "(" S ")" | ""
  const StateId start = builder.add_state(), open = builder.add_state(), inner = builder.add_state(),
                end = builder.add_state();
  const RuleId rule = rule_at(builder, start);
  builder.set_final(start);
  builder.set_final(end);
  builder.add_edge(start, '(', '(', open);
  builder.add_call(open, rule, inner);
  builder.add_edge(inner, ')', ')', end);
  const auto grammar = grammar_of(builder.build(rule));
  for (const size_t n : {0U, 1U, 5U, 300U}) {
    EXPECT_TRUE(accepts(*grammar, std::string(n, '(') + std::string(n, ')'))) << n;
    EXPECT_FALSE(accepts(*grammar, std::string(n + 1, '(') + std::string(n, ')'))) << n;
    EXPECT_FALSE(accepts(*grammar, std::string(n, '(') + std::string(n + 1, ')'))) << n;
  }
}

// Both alternatives read the same at every depth: stacks must not double with each level.
TEST(Automaton, ambiguous_recursion_stays_small) {
  AutomatonBuilder builder;  // S = "a" S "x" | "a" S "y" | "b"
  const StateId start = builder.add_state(), end = builder.add_state();
  const RuleId rule = rule_at(builder, start);
  builder.set_final(end);
  builder.add_edge(start, 'b', 'b', end);
  for (const char last : {'x', 'y'}) {
    const StateId open = builder.add_state(), inner = builder.add_state();
    builder.add_edge(start, 'a', 'a', open);
    builder.add_call(open, rule, inner);
    builder.add_edge(inner, static_cast<uint8_t>(last), static_cast<uint8_t>(last), end);
  }
  const auto grammar = grammar_of(builder.build(rule));
  Random random(5, "ambiguous");
  std::string text(400, 'a');
  text += 'b';
  for (int i = 0; i < 400; ++i) text += "xy"[random.below(2)];
  EXPECT_TRUE(accepts(*grammar, text));
  EXPECT_LT(grammar->cached_bytes(), 1U << 20);
}

TEST(Automaton, repetitions_are_counted) {
  for (const auto& [min, max] : {std::pair{0U, 0U}, {0U, 3U}, {2U, 2U}, {2U, 5U}, {3U, kUnbounded}}) {
    AutomatonBuilder builder;
    const auto grammar = grammar_of(builder.build(builder.add_repeat(text_rule(builder, "ab"), min, max)));
    std::string text;
    for (uint32_t n = 0; n < 9; ++n, text += "ab")
      EXPECT_EQ(accepts(*grammar, text), min <= n && n <= max) << n;
    EXPECT_FALSE(accepts(*grammar, "aba"));
  }
}

TEST(Automaton, dead_ends_are_removed) {
  AutomatonBuilder builder;
  const StateId start = builder.add_state(), nowhere = builder.add_state(), end = builder.add_state();
  builder.set_final(end);
  builder.add_edge(start, 'a', 'a', end);
  builder.add_edge(start, 'b', 'b', nowhere);
  const RuleId endless = rule_at(builder, nowhere);
  builder.add_call(start, endless, end);
  builder.add_call(start, builder.add_repeat(endless, 0, 5), end);  // none at all is still possible
  const RuleId root = rule_at(builder, start);
  const auto grammar = grammar_of(builder.build(root));
  EXPECT_TRUE(accepts(*grammar, "a"));
  EXPECT_TRUE(accepts(*grammar, ""));
  auto position = grammar->start();
  EXPECT_FALSE(grammar->advance_bytes(position, "b"));
  EXPECT_FALSE(builder.build(endless).has_value());
  EXPECT_FALSE(builder.build(builder.add_repeat(endless, 1, 5)).has_value());
}

TEST(Automaton, beyond_the_budget_building_fails) {
  AutomatonBuilder builder(100);
  const RuleId rule = text_rule(builder, std::string(1000, 'x'));
  EXPECT_TRUE(builder.full());
  const auto built = builder.build(rule);
  ASSERT_FALSE(built.has_value());
  EXPECT_EQ(built.error().code, ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace assay::grammar
