// Templates of model families over many conversations, against python3-jinja2 (record_templates.py), and the
// behaviour that has no counterpart there: limits, error codes, line numbers.
#include "tokenizer/chat_template.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace assay {
namespace {

namespace json = boost::json;

constexpr TemplateClock kRecordedClock{1767268800};  // 2026-01-01 12:00:00 UTC, as in jinja_oracle.py

std::filesystem::path data_folder() {
  return std::filesystem::path(ASSAY_SOURCE_DIR) / "tests/tokenizer/data";
}

json::value load_json(const std::filesystem::path& path) {
  auto text = read_file(path);
  EXPECT_TRUE(text.has_value()) << path;
  json::parse_options options;
  options.max_depth = 200;
  return json::parse(text.value_or("{}"), {}, options);
}

class ChatTemplateTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

// One case: a template, a context, and what jinja2 made of them.
void expect_case(const std::string& source, const json::object& context, const json::object& recorded) {
  auto parsed = ChatTemplate::parse(source);
  auto rendered =
      parsed ? parsed->render(context, kRecordedClock) : Result<std::string>(std::unexpected(parsed.error()));
  if (const json::value* error = recorded.if_contains("error")) {
    EXPECT_FALSE(rendered.has_value()) << "jinja2 fails with " << *error << ", found: " << *rendered;
    return;
  }
  ASSERT_TRUE(rendered.has_value()) << rendered.error().message();
  EXPECT_EQ(*rendered, recorded.at("output").as_string());
}

size_t count_outputs(const json::array& cases) {
  size_t outputs = 0;
  for (const auto& one : cases) outputs += one.as_object().contains("output") ? 1 : 0;
  return outputs;
}

TEST_F(ChatTemplateTest, model_families_render_as_jinja2_does) {
  const json::value contexts = load_json(data_folder() / "conversations.json");
  const json::value recorded = load_json(data_folder() / "template_outputs.json");
  const json::array& cases = recorded.at("cases").as_array();
  ASSERT_GE(count_outputs(cases), 280u);
  for (const auto& one : cases) {
    const std::string name(one.at("name").as_string()), conversation(one.at("conversation").as_string());
    SCOPED_TRACE(name + " over " + conversation);
    auto source = read_file(data_folder() / "templates" / (name + ".jinja"));
    ASSERT_TRUE(source.has_value());
    expect_case(*source, contexts.at(conversation).as_object(), one.as_object());
  }
}

// Templates that are not part of the repository: see record_templates.py.
TEST_F(ChatTemplateTest, templates_recorded_elsewhere_render_as_jinja2_does) {
  const char* path = std::getenv("ASSAY_TEMPLATE_CASES");
  if (!path) GTEST_SKIP() << "ASSAY_TEMPLATE_CASES names no file written by record_templates.py --whole";
  const json::value recorded = load_json(path);
  for (const auto& one : recorded.at("cases").as_array()) {
    SCOPED_TRACE(json::serialize(one.at("name")) + " over " + json::serialize(one.at("conversation")));
    expect_case(std::string(one.at("template").as_string()), one.at("context").as_object(), one.as_object());
  }
}

TEST_F(ChatTemplateTest, snippets_render_as_jinja2_does) {
  const json::value recorded = load_json(data_folder() / "jinja_snippets.json");
  const json::array& cases = recorded.at("cases").as_array();
  ASSERT_GE(cases.size(), 650u);
  ASSERT_GE(count_outputs(cases), 400u);
  for (const auto& one : cases) {
    const std::string source(one.at("template").as_string());
    SCOPED_TRACE(source);
    expect_case(source, recorded.at("context").as_object(), one.as_object());
  }
}

Error error_of(std::string_view source, const json::object& context = {}) {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed) return parsed.error();
  auto rendered = parsed->render(context);
  EXPECT_FALSE(rendered.has_value()) << source.substr(0, 200) << " gives " << rendered->substr(0, 200);
  return rendered ? Error{ErrorCode::kCount, "", ""} : rendered.error();
}

TEST_F(ChatTemplateTest, raise_exception_is_an_invalid_argument_with_its_text) {
  const Error error =
      error_of("a\n{% if true %}\n{{ raise_exception('roles must ' ~ 'alternate') }}{% endif %}");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.what, "roles must alternate");
  EXPECT_EQ(error.where, "chat template, line 3");
}

TEST_F(ChatTemplateTest, syntax_errors_are_corrupt_and_carry_their_line) {
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"{% if x %}\n\nb", "line 3"},       {"a\nb {{ 1 + }}", "line 2"}, {"{% endif %}", "line 1"},
      {"\n\n{% for x xs %}", "line 3"},    {"{# a\n", "line 1"},         {"x\n{{ 'a }}", "line 2"},
      {"{{ a\n\n| }}", "line 3"},          {"\r\n\r{{ ) }}", "line 3"},  {"{% raw %}\n", "line 1"},
      {"{% macro m(a=1,\nb) %}", "line 2"}};
  for (const auto& [source, line] : expected) {
    const Error error = error_of(source);
    EXPECT_EQ(error.code, ErrorCode::kCorrupt) << source;
    EXPECT_EQ(error.where, "chat template, " + line) << source;
  }
}

TEST_F(ChatTemplateTest, what_is_outside_the_subset_is_unsupported) {
  for (const char* source :
       {"{% include 'a' %}", "{% extends 'a' %}", "{% import 'a' as b %}", "{% autoescape true %}",
        "{{ x | urlize }}", "{{ x is nosuch }}", "{{ 'a'.translate({}) }}", "{{ 2 ** 127 }}"}) {
    EXPECT_EQ(error_of(source).code, ErrorCode::kUnsupported) << source;
  }
}

TEST_F(ChatTemplateTest, errors_while_rendering_carry_the_line_of_the_expression) {
  EXPECT_EQ(error_of("{% for x in [1] %}\n{{ x }}\n{{ missing.name }}{% endfor %}").where,
            "chat template, line 3");
  EXPECT_EQ(error_of("{{ 'a' +\n 1 }}").where, "chat template, line 1");
  EXPECT_EQ(error_of("{% macro m() %}\n\n{{ 1 / 0 }}{% endmacro %}\n{{ m() }}").where,
            "chat template, line 3");
  EXPECT_EQ(error_of("{{ missing.name }}").what, "'missing' is undefined");
  EXPECT_EQ(error_of("{{ {}.a.b }}").what, "'dict object' has no attribute 'a'");
}

std::string repeat(std::string_view part, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += part;
  return out;
}

// Each would hang, exhaust memory or overflow the stack if nothing bounded it.
TEST_F(ChatTemplateTest, hostile_templates_end_with_exhausted_resources) {
  const std::string doubling =
      "{% set ns = namespace(v='x') %}{% for i in range(60) %}{% set ns.v = ns.v ~ ns.v %}{% endfor %}";
  const std::string nesting =
      "{% set ns = namespace(v=[]) %}{% for i in range(9999) %}{% set ns.v = [ns.v] %}{% endfor %}";
  const std::string loops = repeat("{% for a in range(99999) %}", 5) + "x" + repeat("{% endfor %}", 5);
  const std::vector<std::string> sources = {
      doubling,
      nesting,
      loops,
      "{% for a in range(100000) %}{{ 'x' * 100000 }}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(x) %}{{ m([x]) }}{% endmacro %}{{ m(1) }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      "{% set ns = namespace() %}{% set ns.self = [ns] %}{{ ns }}",
      "{% set ns = namespace(v='a') %}{% for i in range(9999) %}{% set ns.v = ns.v | map('string') %}{% "
      "endfor %}"
      "{{ ns.v | list }}",
      "{{ 'x' * 10 ** 12 }}",
      "{{ [0] * 10 ** 12 }}",
      "{{ range(10 ** 9) | list }}",
      "{{ 'ab' | center(10 ** 12) }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ '{:1000000000}'.format(1) }}",
      "{{ [1] | batch(10 ** 9, 0) | list }}",
      "{% set ns = namespace(v=['x']) %}{% for i in range(60) %}{% set ns.v = ns.v + ns.v %}{% endfor %}",
      "{% set ns = namespace(v='aa') %}{% for i in range(99) %}{% set ns.v = ns.v.replace('a', 'aaaa') %}{% "
      "endfor %}",
      "{{ " + repeat("[", 5000) + repeat("]", 5000) + " }}",
      "{{ " + repeat("not ", 50000) + "1 }}",
      "{{ " + repeat("-", 50000) + "1 }}",
      "{{ 1" + repeat(" + 1", 50000) + " }}",
      "{{ x" + repeat(".a", 50000) + " }}",
      "{{ x" + repeat("|upper", 50000) + " }}",
      repeat("{% if 1 %}", 5000) + repeat("{% endif %}", 5000),
      repeat("{% filter upper %}", 5000) + repeat("{% endfilter %}", 5000),
      "{% set " + repeat("(", 5000) + "a" + repeat(")", 5000) + " = 1 %}",
      std::string(2 << 20, 'x'),
  };
  for (const std::string& source : sources) {
    const Error error = error_of(source);
    EXPECT_EQ(error.code, ErrorCode::kResourceExhausted) << source.substr(0, 100) << ": " << error.message();
  }
}

TEST_F(ChatTemplateTest, deep_context_is_refused) {
  json::value deep = 1;
  for (int i = 0; i < 1000; ++i) deep = json::array{deep};
  EXPECT_EQ(error_of("{{ x }}", {{"x", deep}}).code, ErrorCode::kResourceExhausted);
}

TEST_F(ChatTemplateTest, cycles_are_freed_and_compared_by_identity) {
  auto parsed = ChatTemplate::parse(
      "{% set a = namespace() %}{% set b = namespace() %}{% set a.x = b %}{% set b.x = a %}"
      "{% macro m() %}{{ a.x.x == a }}{% endmacro %}{% set a.m = m %}{{ a.m() }}{{ a == b }}");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->render({}).value_or("failed"), "TrueFalse");  // the address sanitizer sees leaks
}

TEST_F(ChatTemplateTest, invalid_utf8_passes_through) {
  auto parsed = ChatTemplate::parse("{{ x }}|{{ x | upper }}|{{ x[0] }}|{{ x | length }}|{{ x.strip() }}");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed
                ->render({{"x",
                           "\xff"
                           "a\xe2\x82"}})
                .value_or("failed"),
            "\xff"
            "a\xe2\x82|\xff"
            "A\xe2\x82|\xff|4|\xff"
            "a\xe2\x82");
}

TEST_F(ChatTemplateTest, one_template_renders_in_parallel) {
  auto parsed = ChatTemplate::parse(
      "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t = ns.t ~ m | upper ~ loop.index %}{% "
      "endfor %}"
      "{{ ns.t }}{{ messages | tojson }}");
  ASSERT_TRUE(parsed.has_value());
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        results[t] = parsed->render({{"messages", {std::to_string(t), "b"}}}).value_or("");
    });
  }
  for (auto& thread : threads) thread.join();
  for (size_t t = 0; t < results.size(); ++t) {
    const std::string number = std::to_string(t);
    EXPECT_EQ(results[t], number + "1B2[\"" + number + "\", \"b\"]");
  }
}

}  // namespace
}  // namespace assay
