#include "serve/hostile_requests.h"

namespace assay::testing {
namespace {

using Rows = std::vector<HostileRow>;

std::string schema_field(const std::string& schema) {
  return R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":)" + schema + "}}";
}
std::string string_with(const std::string& keywords) {
  return R"({"type":"string",)" + keywords + "}";
}
std::string json_text(const std::string& text) {
  return boost::json::serialize(boost::json::string(text));
}

void add_schemas(Rows& rows) {
  const auto refuse = [&](const std::string& schema, const std::string& code) {
    rows.push_back({"schema " + schema.substr(0, 150), chat_with(schema_field(schema)), 400, code});
  };
  for (const char* schema : {"5", "\"string\"", "[]"}) refuse(schema, "invalid_type");
  refuse("null", "missing_required_parameter");
  for (const char* schema :
       {R"({"type":7})", R"({"type":"text"})", R"({"type":[]})", R"({"enum":[]})", R"({"enum":5})",
        R"({"properties":[]})", R"({"required":"a"})", R"({"required":[1]})", R"({"minLength":-1})",
        R"({"minLength":1.5})", R"({"maxItems":"5"})", R"({"items":5})", R"({"anyOf":[]})", R"({"anyOf":{}})",
        R"({"$ref":5})", R"({"minimum":"0"})", R"({"pattern":5})", R"({"additionalProperties":5})"}) {
    refuse(schema, "invalid_schema");
  }
  for (const char* schema :
       {R"({"not":{}})", R"({"if":{},"then":{}})", R"({"uniqueItems":true})", R"({"multipleOf":2})",
        R"({"patternProperties":{"a":{}}})", R"({"$dynamicRef":"#a"})", R"({"contains":{}})",
        R"({"made_up":1})", R"({"type":"string","format":"made-up"})",
        R"({"dependentRequired":{"a":["b"]}})"}) {
    refuse(schema, "unsupported_schema");
  }
}

void add_bombs(Rows& rows) {
  const auto complex = [&](const std::string& name, const std::string& schema) {
    rows.push_back({"bomb: " + name, chat_with(schema_field(schema)), 400, "schema_too_complex"});
  };
  const auto pattern = [](const std::string& text) { return string_with("\"pattern\":" + json_text(text)); };
  complex("exponential determinisation", pattern("(a|b)*a(a|b){30}"));
  complex("nested counts", pattern("(((a{100}){100}){100}){100}"));
  for (const char* text : {"a{1000000}", "a{0,1000000}", "(ab{10001})*"}) {
    rows.push_back(
        {std::string("bomb: ") + text, chat_with(schema_field(pattern(text))), 400, "unsupported_schema"});
  }
  // Harmless here: lengths are counted, definitions compiled once however often they are named.
  const auto harmless = [&](const std::string& name, const std::string& schema) {
    rows.push_back({"no bomb: " + name, chat_with(schema_field(schema)), 200, ""});
  };
  harmless("long string", string_with(R"("minLength":1000000000)"));
  harmless("long array", R"({"type":"array","items":{"type":"string"},"minItems":1000000000})");
  harmless("doubling definitions", [] {
    std::string definitions = R"("d0":{"enum":["aa","bb"]})";
    for (int i = 1; i <= 20; ++i) {
      definitions += fmt::format(R"(,"d{}":{{"type":"array","prefixItems":[{{"$ref":"#/$defs/d{}"}},)"
                                 R"({{"$ref":"#/$defs/d{}"}}],"minItems":2,"maxItems":2}})",
                                 i, i - 1, i - 1);
    }
    return R"({"$ref":"#/$defs/d20","$defs":{)" + definitions + "}}";
  }());
}

void add_patterns(Rows& rows) {
  const auto refuse = [&](const std::string& text, const std::string& code) {
    rows.push_back({"pattern " + text.substr(0, 60),
                    chat_with(schema_field(string_with("\"pattern\":" + json_text(text)))), 400, code});
  };
  for (const char* text : {"(", ")", "*", "+a", "a**", "[", "[z-a]", "a{2,1}", "\\"})
    refuse(text, "invalid_schema");
  for (const char* text : {"(?=a)", "(?!a)", "(?<=a)", "(a)\\1", "\\ba"}) refuse(text, "unsupported_schema");
}

void add_formats(Rows& rows) {
  const auto refuse = [&](const std::string& value, const std::string& code) {
    rows.push_back({"response_format " + value, chat_with("\"response_format\":" + value), 400, code});
  };
  for (const char* value : {"\"json\"", "[]", "5", "true", R"({"type":5})"}) refuse(value, "invalid_type");
  refuse("{}", "missing_required_parameter");
  refuse(R"({"type":"json_schema"})", "missing_required_parameter");
  refuse(R"({"type":"json_schema","json_schema":{}})", "missing_required_parameter");
  refuse(R"({"type":"json_schema","json_schema":{"name":"n"}})", "missing_required_parameter");
  refuse(R"({"type":"json_schema","json_schema":{"schema":{}}})", "missing_required_parameter");
  refuse(R"({"type":"json_schema","json_schema":[]})", "invalid_type");
  refuse(R"({"type":"json_schema","json_schema":{"name":5,"schema":{}}})", "invalid_type");
  refuse(R"({"type":"json_schema","json_schema":{"name":"n","schema":{},"strict":"yes"}})", "invalid_type");
  refuse(R"({"type":"yaml"})", "invalid_value");
  refuse(R"({"type":"json_object","schema":{}})", "unknown_parameter");
  refuse(R"({"type":"json_schema","json_schema":{"name":"n","schema":{},"more":1}})", "unknown_parameter");
  rows.push_back({"null format", chat_with(R"("response_format":null)"), 200, ""});
  rows.push_back({"text format", chat_with(R"("response_format":{"type":"text"})"), 200, ""});
}

std::string tool(const std::string& function) {
  return R"({"type":"function","function":)" + function + "}";
}

void add_tools(Rows& rows) {
  const auto refuse = [&](const std::string& field, const std::string& code) {
    rows.push_back({"tools " + field.substr(0, 150), chat_with(field), 400, code});
  };
  const std::string good = tool(R"({"name":"f"})");
  for (const char* value : {"{}", "5", "\"f\"", "[null]", "[5]", "[[]]"})
    refuse(std::string("\"tools\":") + value, "invalid_type");
  refuse(R"("tools":[{}])", "invalid_value");
  refuse(R"("tools":[{"type":"retrieval"}])", "invalid_value");
  refuse(R"("tools":[{"type":"function"}])", "missing_required_parameter");
  refuse("\"tools\":[" + tool("{}") + "]", "missing_required_parameter");
  for (const char* name : {"", "a b", "a.b", "<f>", "f\\u0000", "\xc3\xa9"})
    refuse("\"tools\":[" + tool(std::string("{\"name\":\"") + name + "\"}") + "]", "invalid_value");
  refuse("\"tools\":[" + tool("{\"name\":\"" + std::string(65, 'f') + "\"}") + "]", "invalid_value");
  refuse("\"tools\":[" + good + "," + good + "]", "invalid_value");
  refuse("\"tools\":[" + tool(R"({"name":"f","parameters":[]})") + "]", "invalid_type");
  refuse("\"tools\":[" + tool(R"({"name":"f","more":1})") + "]", "unknown_parameter");
  refuse("\"tools\":[" + tool(R"({"name":"f","strict":1})") + "]", "invalid_type");
  refuse("\"tools\":[" + tool(R"({"name":"f","strict":true,"parameters":{"type":7}})") + "]",
         "invalid_schema");
  refuse("\"tools\":[" +
             tool(R"({"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":)"
                  R"({"type":"string","pattern":"(a|b)*a(a|b){30}"}}}})") +
             "]",
         "schema_too_complex");
  std::string many;
  for (int i = 0; i < 129; ++i) many += (i == 0 ? "" : ",") + tool(fmt::format(R"({{"name":"f{}"}})", i));
  refuse("\"tools\":[" + many + "]", "invalid_value");
  refuse(R"("tool_choice":"required")", "invalid_value");
  refuse("\"tools\":[" + good + R"(],"tool_choice":"sometimes")", "invalid_type");
  refuse("\"tools\":[" + good + R"(],"tool_choice":{"type":"function","function":{"name":"g"}})",
         "invalid_value");
  refuse("\"tools\":[" + good + R"(],"tool_choice":{"type":"function"})", "missing_required_parameter");
  refuse("\"tools\":[" + good + R"(],"response_format":{"type":"json_object"})", "invalid_value");
  refuse(R"("tools":[],"tool_choice":"auto")", "invalid_value");
}

void add_biases(Rows& rows) {
  const auto refuse = [&](const std::string& value, const std::string& code) {
    rows.push_back({"logit_bias " + value.substr(0, 60), chat_with("\"logit_bias\":" + value), 400, code});
  };
  for (const char* value :
       {"[]", "[1]", "5", "\"1\"", "true", R"({"1":"2"})", R"({"1":true})", R"({"1":[]})", R"({"1":null})"}) {
    refuse(value, "invalid_type");
  }
  for (const char* value :
       {R"({"1":100.001})", R"({"1":-100.001})", R"({"1":1e999})", R"({"-1":1})", R"({"257":1})",
        R"({"2147483648":1})", R"({"1.5":1})", R"({"0x1":1})", R"({"":1})", R"({" 1":1})", R"({"1 ":1})",
        R"({"+1":1})", R"({"one":1})", R"({"1e1":1})", R"({"01":1})", R"({"-0":1})", R"({"1\u0000":1})"}) {
    refuse(value, "invalid_value");
  }
  std::string many;
  for (int i = 0; i < 1025; ++i) many += fmt::format("{}\"{}\":1", i == 0 ? "" : ",", i);
  refuse("{" + many + "}", "invalid_value");
  std::string all;
  for (int i = 0; i < 257; ++i) all += fmt::format("{}\"{}\":-100", i == 0 ? "" : ",", i);
  rows.push_back({"logit_bias of every token", chat_with("\"logit_bias\":{" + all + "}"), 200, ""});
  rows.push_back({"logit_bias at its bounds", chat_with(R"("logit_bias":{"0":100,"256":-100})"), 200, ""});
  rows.push_back({"empty logit_bias", chat_with(R"("logit_bias":{})"), 200, ""});
}

}  // namespace

std::vector<HostileRow> schema_rows() {
  Rows rows;
  add_schemas(rows);
  add_bombs(rows);
  add_patterns(rows);
  add_formats(rows);
  add_tools(rows);
  add_biases(rows);
  return rows;
}

}  // namespace assay::testing
