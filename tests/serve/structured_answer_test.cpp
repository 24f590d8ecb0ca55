// response_format and tools through the server, with a fake engine that answers with a scripted text.
#include <gtest/gtest.h>

#include <limits>

#include "serve/served.h"

namespace assay {
namespace {

using testing::events_of;
using testing::json_of;
using testing::Served;
using testing::text_at;

const std::string kCall =
    "Well.\n<tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>";
const std::string kTools =
    R"("tools":[{"type":"function","function":{"name":"get","parameters":{"type":"object",
        "properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}}])";

std::string schema_format(const std::string& schema) {
  return R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":)" + schema + "}}";
}

// The tokens that the request's constraint allows first, as text.
std::string allowed_first(const GenerationRequest& request) {
  if (request.constraint == nullptr) return "(all)";
  std::vector<float> logits(300, 0.0F);
  EXPECT_TRUE(request.constraint->mask(logits));
  std::string allowed;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == -std::numeric_limits<float>::infinity()) continue;
    allowed += i == 256 ? "<end>" : std::string(1, static_cast<char>(i));
  }
  return allowed;
}

TEST(StructuredAnswer, formats_become_constraints) {
  Served served;
  EXPECT_EQ(served.chat().status, 200);
  EXPECT_EQ(served.chat(R"("response_format":{"type":"text"})").status, 200);
  EXPECT_EQ(served.chat(R"("response_format":{"type":"json_object"})").status, 200);
  EXPECT_EQ(served.chat(schema_format(R"({"enum":[true,"x"]})")).status, 200);
  EXPECT_EQ(served.complete(schema_format(R"({"enum":[null,7]})")).status, 200);
  const std::vector<GenerationRequest> submitted = served.engine->submitted();
  ASSERT_EQ(submitted.size(), 5U);
  const char* const expected[] = {"(all)", "(all)", "{", "\"t", "7n"};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(allowed_first(submitted[i]), expected[i]) << i;
}

// Every choice has a position of its own in the grammar.
TEST(StructuredAnswer, choices_are_constrained_apart) {
  Served served;
  EXPECT_EQ(served.chat(R"("n":2,)" + schema_format(R"({"type":"boolean"})")).status, 200);
  const std::vector<GenerationRequest> submitted = served.engine->submitted();
  ASSERT_EQ(submitted.size(), 2U);
  ASSERT_TRUE(submitted[0].constraint->accept('t'));
  EXPECT_EQ(allowed_first(submitted[0]), "r");
  EXPECT_EQ(allowed_first(submitted[1]), "ft");
  EXPECT_FALSE(submitted[0].constraint->complete());
  for (const char c : {'r', 'u', 'e'}) ASSERT_TRUE(submitted[0].constraint->accept(c));
  EXPECT_TRUE(submitted[0].constraint->complete());
  EXPECT_EQ(allowed_first(submitted[0]), "<end>");
}

TEST(StructuredAnswer, bad_schemas_are_refused_with_param_and_place) {
  Served served;
  const std::tuple<std::string, const char*, const char*> cases[] = {
      {R"({"type":"strnig"})", "invalid_schema", "/type"},
      {R"({"properties":{"a":{"not":{}}}})", "unsupported_schema", "/properties/a/not"},
      {R"x({"type":"string","pattern":"(a|b)*a(a|b){30}"})x", "schema_too_complex", "/pattern"},
      {R"({"type":"object","properties":{"x":{"$ref":"#"}},"required":["x"]})", "invalid_schema",
       "no document"},
      {"false", "invalid_schema", "no document"},
  };
  for (const auto& [schema, code, place] : cases) {
    for (const auto& response :
         {served.chat(schema_format(schema)), served.complete(schema_format(schema))}) {
      EXPECT_EQ(response.status, 400) << schema;
      const auto body = json_of(response);
      EXPECT_EQ(text_at(body, "/error/code"), code) << response.body;
      EXPECT_EQ(text_at(body, "/error/param"), "response_format.json_schema.schema");
      EXPECT_NE(text_at(body, "/error/message").find(place), std::string::npos) << response.body;
    }
  }
  EXPECT_TRUE(served.engine->submitted().empty());  // nothing ran without its constraint
  EXPECT_EQ(served.chat().status, 200);
}

TEST(StructuredAnswer, templates_without_tools_refuse_them) {
  Served served;
  const auto refused = served.chat(kTools);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(text_at(json_of(refused), "/error/code"), "tools_not_supported");
  EXPECT_EQ(text_at(json_of(refused), "/error/param"), "tools");
  EXPECT_EQ(served.chat(kTools + R"(,"tool_choice":"none")").status, 200);
  const auto answer =
      served.post("/v1/chat/completions",
                  R"({"model":"org/toy","messages":[{"role":"tool","tool_call_id":"c","content":"x"}]})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(text_at(json_of(answer), "/error/param"), "messages[0]");
}

Served with_tools(const std::string& reply) {
  return Served({.reply = reply, .context = 4000}, {}, true, true, ToolFormat::kHermes);
}

std::string prompt_of(const Served& served) {
  return served.engine->tokenizer().decode(served.engine->submitted().back().prompt, false);
}

TEST(StructuredAnswer, calls_are_told_from_content) {
  const Served served = with_tools(kCall);
  const auto body = json_of(served.chat(kTools));
  EXPECT_EQ(text_at(body, "/choices/0/message/content"), "Well.");
  EXPECT_EQ(text_at(body, "/choices/0/message/tool_calls/0/type"), "function");
  EXPECT_EQ(text_at(body, "/choices/0/message/tool_calls/0/id").substr(0, 5), "call_");
  EXPECT_EQ(text_at(body, "/choices/0/message/tool_calls/0/function/name"), "get");
  EXPECT_EQ(text_at(body, "/choices/0/message/tool_calls/0/function/arguments"), R"({"city": "Oslo"})");
  EXPECT_EQ(text_at(body, "/choices/0/finish_reason"), "tool_calls");
  EXPECT_EQ(served.engine->submitted().back().constraint, nullptr);  // free to call, nothing strict
  EXPECT_NE(prompt_of(served).find("<tools>"), std::string::npos);
}

TEST(StructuredAnswer, calls_are_streamed_in_pieces) {
  const Served served = with_tools(kCall);
  const auto response = served.chat(kTools + R"(,"stream":true)");
  std::string content, arguments, name, id, reason;
  int with_role = 0;
  for (const std::string& event : events_of(response.body)) {
    if (event == "[DONE]") continue;
    const auto chunk = boost::json::parse(event);
    const auto& choice = chunk.at("choices").at(0);
    const auto& delta = choice.at("delta").as_object();
    with_role += delta.contains("role") ? 1 : 0;
    if (delta.contains("content") && delta.at("content").is_string())
      content += delta.at("content").as_string();
    if (!choice.at("finish_reason").is_null()) reason = choice.at("finish_reason").as_string();
    if (!delta.contains("tool_calls")) continue;
    for (const auto& call : delta.at("tool_calls").as_array()) {
      EXPECT_EQ(call.at("index").as_int64(), 0);
      if (call.as_object().contains("id")) id += call.at("id").as_string();
      if (call.at("function").as_object().contains("name"))
        name += call.at("function").at("name").as_string();
      arguments += call.at("function").at("arguments").as_string();
    }
  }
  EXPECT_EQ(content, "Well.");
  EXPECT_EQ(name, "get");
  EXPECT_EQ(id.size(), 29U);
  EXPECT_EQ(arguments, R"({"city": "Oslo"})");
  EXPECT_EQ(reason, "tool_calls");
  EXPECT_EQ(with_role, 1);
}

TEST(StructuredAnswer, forced_calls_are_opened_and_constrained) {
  const Served served =
      with_tools("\n{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>");
  for (const std::string& choice :
       {std::string(R"("required")"), std::string(R"({"type":"function","function":{"name":"get"}})")}) {
    const auto body = json_of(served.chat(kTools + R"(,"tool_choice":)" + choice));
    EXPECT_EQ(text_at(body, "/choices/0/message/content"), "null");
    EXPECT_EQ(text_at(body, "/choices/0/message/tool_calls/0/function/arguments"), R"({"city": "Rome"})");
    const std::string prompt = prompt_of(served);
    EXPECT_TRUE(prompt.ends_with("<assistant><tool_call>")) << prompt;
    const GenerationRequest request = served.engine->submitted().back();
    ASSERT_NE(request.constraint, nullptr);
    for (const char c : std::string("\n{\"name\": \"get\", \"arguments\": {\"city\":"))
      ASSERT_TRUE(request.constraint->accept(static_cast<unsigned char>(c))) << c;
    EXPECT_EQ(allowed_first(request), "\n \"");
  }
}

// A model that is free to call is held to a strict schema from the moment it does.
TEST(StructuredAnswer, strict_functions_are_constrained_once_a_call_begins) {
  const Served served = with_tools("no");
  std::string tools = kTools;
  tools.insert(tools.find("\"name\""), R"("strict":true,)");
  EXPECT_EQ(served.chat(tools).status, 200);
  const GenerationRequest request = served.engine->submitted().back();
  ASSERT_NE(request.constraint, nullptr);
  const auto feed = [&](const std::string& text) {
    for (const char c : text) ASSERT_TRUE(request.constraint->accept(static_cast<unsigned char>(c))) << c;
  };
  EXPECT_EQ(allowed_first(request).size(), 300U + 4);  // everything, the end token too
  feed("Hm <tool_ <tool_call>");
  EXPECT_EQ(allowed_first(request), "\n");
  feed("\n{\"name\": \"get\", \"arguments\": {");
  EXPECT_EQ(allowed_first(request), "\n \"");
}

TEST(StructuredAnswer, an_unsupported_parameter_schema_is_refused_where_it_would_bind) {
  const Served served = with_tools("no");
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"get","parameters":{"type":"object","minProperties":1}}}])";
  EXPECT_EQ(served.chat(tools).status, 200);
  const auto refused = served.chat(tools + R"(,"tool_choice":"required")");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(text_at(json_of(refused), "/error/code"), "unsupported_schema");
  EXPECT_NE(text_at(json_of(refused), "/error/message").find("tools[0].function.parameters"),
            std::string::npos)
      << refused.body;
}

TEST(StructuredAnswer, tool_answers_reach_the_template) {
  const Served served = with_tools("Fine.");
  const auto response = served.post("/v1/chat/completions",
                                    R"({"model":"org/toy","messages":[{"role":"user","content":"weather"},
          {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{}"}}]},
          {"role":"tool","tool_call_id":"c1","content":"7 degrees"}],)" +
                                        kTools + "}");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(text_at(json_of(response), "/choices/0/message/content"), "Fine.");
  EXPECT_EQ(text_at(json_of(response), "/choices/0/finish_reason"), "stop");
  EXPECT_NE(prompt_of(served).find("<tool>7 degrees"), std::string::npos);
}

}  // namespace
}  // namespace assay
