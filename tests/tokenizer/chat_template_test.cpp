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

}  // namespace
}  // namespace assay
