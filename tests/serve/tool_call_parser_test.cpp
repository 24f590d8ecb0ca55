#include "serve/tool_call_parser.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/random.h"
#include "grammar/token_grammar.h"

namespace assay {
namespace {

struct Call {
  std::string name, arguments;
  friend bool operator==(const Call&, const Call&) = default;
};
struct Parsed {
  std::string content;
  std::vector<Call> calls;
  friend bool operator==(const Parsed&, const Parsed&) = default;
};

void PrintTo(const Parsed& parsed, std::ostream* out) {
  *out << "content '" << parsed.content << "'";
  for (const Call& call : parsed.calls) *out << ", " << call.name << "(" << call.arguments << ")";
}

// In pieces of up to `longest` bytes.
Parsed parse(ToolFormat format, const std::string& text, bool opened, uint64_t seed, size_t longest) {
  Random random(seed, "pieces");
  ToolCallParser parser(format, {"f", "get_weather"}, opened);
  Parsed parsed;
  const auto take = [&](const std::vector<ToolEvent>& events) {
    for (const ToolEvent& event : events) {
      switch (event.kind) {
        case ToolEvent::Kind::kContent:
          parsed.content += event.text;
          break;
        case ToolEvent::Kind::kCall:
          EXPECT_EQ(event.call, parsed.calls.size());
          parsed.calls.push_back({event.text, ""});
          break;
        case ToolEvent::Kind::kArguments:
          EXPECT_EQ(event.call + 1, parsed.calls.size());
          parsed.calls.back().arguments += event.text;
          break;
        case ToolEvent::Kind::kCount:
          ADD_FAILURE();
      }
    }
  };
  for (size_t at = 0; at < text.size();) {
    const size_t n = 1 + random.below(longest);
    take(parser.feed(text.substr(at, n)));
    at += n;
  }
  take(parser.finish());
  EXPECT_EQ(parser.n_calls(), parsed.calls.size());
  return parsed;
}

// However the text is cut, the same comes out.
void expect_parsed(ToolFormat format, const std::string& text, const Parsed& expected, bool opened = false) {
  for (uint64_t seed = 0; seed < 30; ++seed)
    ASSERT_EQ(parse(format, text, opened, seed, seed == 0 ? 10'000 : 1 + seed / 3), expected) << text;
}

TEST(ToolCallParser, hermes_calls_are_told_from_content) {
  using enum ToolFormat;
  const std::string call =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, {\"b\": \"}\\\"{\"}]}}\n</tool_call>";
  const Call parsed{"f", R"({"a": [1, {"b": "}\"{"}]})"};
  expect_parsed(kHermes, call, {"", {parsed}});
  expect_parsed(kHermes, "Let me see.\n" + call + "\n", {"Let me see.", {parsed}});
  expect_parsed(kHermes, call + "\n" + call, {"", {parsed, parsed}});
  expect_parsed(kHermes, call + "\nand done", {"and done", {parsed}});
  expect_parsed(kHermes, call.substr(11), {"", {parsed}}, true);
  expect_parsed(kHermes, "no call <tool_ here", {"no call <tool_ here", {}});
  expect_parsed(kHermes, "a < b\n", {"a < b\n", {}});
}

TEST(ToolCallParser, other_orders_and_spellings_are_read) {
  using enum ToolFormat;
  expect_parsed(kHermes, R"(<tool_call>{"arguments": {"x":1}, "name": "f"}</tool_call>)",
                {"", {{"f", R"({"x":1})"}}});
  expect_parsed(kHermes, R"(<tool_call>{"name":"f","arguments":"{\"x\": 1}"}</tool_call>)",
                {"", {{"f", R"({"x": 1})"}}});
  expect_parsed(kHermes, R"(<tool_call>{"name":"f"}</tool_call>)", {"", {{"f", "{}"}}});
  expect_parsed(kHermes, R"(<tool_call>{"name":"f","parameters":{}}</tool_call>)", {"", {{"f", "{}"}}});
}

TEST(ToolCallParser, what_is_no_call_stays_content) {
  using enum ToolFormat;
  for (const char* text :
       {R"(<tool_call>{"name": "rm_rf", "arguments": {}}</tool_call>)", "<tool_call>nonsense", "<tool_call>",
        R"(<tool_call>{"name": "f", "argum)", R"(<tool_call>{"name": 5, "arguments": {}}</tool_call>)",
        "<tool_call>{\"a\": nul}</tool_call>"})
    expect_parsed(kHermes, text, {text, {}});
  expect_parsed(kLlama3, "{\"answer\": 42}", {"{\"answer\": 42}", {}});
  expect_parsed(kMistral, "[1, 2]", {"[1, 2]", {}});
}

TEST(ToolCallParser, llama3_calls_begin_the_answer) {
  using enum ToolFormat;
  expect_parsed(kLlama3, R"({"name": "get_weather", "parameters": {"city": "Oslo"}})",
                {"", {{"get_weather", R"({"city": "Oslo"})"}}});
  expect_parsed(kLlama3, R"(Call {"name": "f", "parameters": {}})",
                {R"(Call {"name": "f", "parameters": {}})", {}});
}

TEST(ToolCallParser, mistral_calls_are_a_list) {
  using enum ToolFormat;
  const std::string list =
      R"([{"name": "f", "arguments": {"a": 1}}, {"name": "get_weather", "arguments": {}, "id": "123456789"}])";
  const Parsed expected{"", {{"f", R"({"a": 1})"}, {"get_weather", "{}"}}};
  expect_parsed(kMistral, "[TOOL_CALLS]" + list, expected);
  expect_parsed(kMistral, "[TOOL_CALLS] " + list, expected);
  expect_parsed(kMistral, list, expected, true);
}

// A cut answer keeps what there was of its arguments.
TEST(ToolCallParser, cut_arguments_are_delivered) {
  expect_parsed(ToolFormat::kHermes, R"(<tool_call>{"name": "f", "arguments": {"a": "lo)",
                {"", {{"f", R"({"a": "lo)"}}});
}

TEST(ToolCallParser, random_text_never_breaks_it) {
  const std::string parts[] = {"<tool_call>",
                               "</tool_call>",
                               "{",
                               "}",
                               "[",
                               "]",
                               "\"name\"",
                               ":",
                               "\"f\"",
                               ",",
                               "\"arguments\"",
                               "[TOOL_CALLS]",
                               " ",
                               "\n",
                               "x",
                               "\\",
                               "\"",
                               "\"parameters\"",
                               "é"};
  for (const ToolFormat format : {ToolFormat::kHermes, ToolFormat::kLlama3, ToolFormat::kMistral}) {
    for (uint64_t seed = 0; seed < 3000; ++seed) {
      Random random(seed, "text");
      std::string text;
      for (uint64_t n = random.below(30); n > 0; --n) text += parts[random.below(std::size(parts))];
      const bool opened = seed % 2 == 0;
      ASSERT_EQ(parse(format, text, opened, seed, 3), parse(format, text, opened, seed, 10'000)) << text;
    }
  }
}

// The templates of tests/tokenizer/data, and what is known of their formats.
TEST(ToolFormat, templates_are_recognised_by_their_marks) {
  EXPECT_EQ(detect_tool_format("{% if tools %}<tool_call>{% endif %}"), ToolFormat::kHermes);
  EXPECT_EQ(detect_tool_format("{% if tools %}<tool_call>{{name}}<arg_key>{% endif %}"), ToolFormat::kNone);
  EXPECT_EQ(detect_tool_format("{% if tools %}[TOOL_CALLS]{% endif %}"), ToolFormat::kMistral);
  EXPECT_EQ(detect_tool_format("<|start_header_id|>{{ tools }} '\"parameters\": '"), ToolFormat::kLlama3);
  EXPECT_EQ(detect_tool_format("{{ messages }}"), ToolFormat::kNone);
  EXPECT_EQ(detect_tool_format(""), ToolFormat::kNone);
}

// What a forced call may look like is what the parser reads back.
TEST(ToolFormat, grammars_and_parser_agree) {
  for (const ToolFormat format : {ToolFormat::kHermes, ToolFormat::kLlama3, ToolFormat::kMistral}) {
    ToolRequest tools;
    tools.choice = ToolRequest::Choice::kRequired;
    tools.functions.push_back(
        {"f", boost::json::parse(R"({"type":"object","properties":{"a":{"type":"integer","minimum":0}},
        "required":["a"],"additionalProperties":false})")});
    tools.functions.push_back({"get_weather", nullptr});
    auto automaton = compile_tool_calls(format, tools);
    ASSERT_TRUE(automaton.has_value()) << automaton.error().message();
    std::vector<std::string> texts;
    for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
    texts.emplace_back("<end>");
    grammar::TokenGrammar grammar(
        std::move(*automaton), std::make_shared<const grammar::TokenTrie>(texts, std::vector<int32_t>{256}));
    size_t most = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      Random random(seed, "calls");
      auto position = grammar.start();
      grammar::TokenMask mask(grammar.trie().n_mask_words());
      std::string text;
      for (int step = 0; step < 4000; ++step) {
        ASSERT_TRUE(grammar.mask(position, mask));
        std::vector<int32_t> allowed;
        for (int32_t id = 0; id < 257; ++id)
          if ((mask[static_cast<size_t>(id) / 64] >> (id % 64) & 1U) != 0) allowed.push_back(id);
        int32_t chosen = allowed[random.below(allowed.size())];
        if (step > 60)
          for (const int32_t close : {256, int32_t{'"'}, int32_t{'}'}, int32_t{']'}})
            if (std::find(allowed.begin(), allowed.end(), close) != allowed.end()) {
              chosen = close;
              break;
            }
        if (chosen == 256) break;
        ASSERT_TRUE(grammar.advance(position, chosen));
        text += static_cast<char>(chosen);
      }
      const Parsed parsed = parse(format, text, true, seed, 4);
      EXPECT_EQ(parsed.content, "") << text;
      ASSERT_FALSE(parsed.calls.empty()) << text;
      most = std::max(most, parsed.calls.size());
      for (const Call& call : parsed.calls) {
        const auto arguments = boost::json::parse(call.arguments);
        EXPECT_TRUE(call.name != "f" || arguments.at("a").as_int64() >= 0) << text;
      }
    }
    EXPECT_EQ(most > 1, format != ToolFormat::kLlama3);
  }
}

TEST(ToolFormat, call_ids_are_as_clients_and_templates_want_them) {
  Random random(1);
  EXPECT_EQ(make_call_id(ToolFormat::kHermes, random).size(), 29U);
  EXPECT_EQ(make_call_id(ToolFormat::kMistral, random).size(), 9U);
  EXPECT_NE(make_call_id(ToolFormat::kHermes, random), make_call_id(ToolFormat::kHermes, random));
}

}  // namespace
}  // namespace assay
