#include "serve/hostile_requests.h"

namespace assay::testing {
namespace {

using Rows = std::vector<HostileRow>;

void taken(Rows& rows, const std::string& field) {
  rows.push_back({"takes " + field, chat_with(field), 200, ""});
}
void refused(Rows& rows, const std::string& field, const std::string& code) {
  rows.push_back({"refuses " + field, chat_with(field), 400, code});
}

// A number at its bounds, just past them, and in every wrong type.
struct Bounds {
  const char* name;
  std::vector<const char*> good;
  std::vector<const char*> bad;
};

void add_numbers(Rows& rows) {
  const std::vector<Bounds> all = {
      {"temperature", {"0", "2", "1e-320", "null"}, {"-0.0001", "2.0001", "1e308"}},
      {"top_p", {"1", "1e-6", "null"}, {"0", "-0.0", "1.0001", "-1"}},
      {"min_p", {"0", "1", "null"}, {"-1e-9", "1.0001"}},
      {"top_k", {"-1", "0", "2147483647", "null"}, {"-2", "2147483648", "9223372036854775808", "1e3"}},
      {"presence_penalty", {"-2", "2"}, {"-2.0001", "2.0001"}},
      {"frequency_penalty", {"-2", "2"}, {"-2.0001", "2.0001"}},
      {"repetition_penalty", {"1e-6", "10"}, {"0", "-1", "10.001"}},
      {"n", {"1", "16", "null"}, {"0", "-1", "17", "9223372036854775807", "18446744073709551615", "1e0"}},
      {"max_tokens", {"1", "100"}, {"0", "-1", "2147483648", "9223372036854775808", "1e1"}},
      {"max_completion_tokens", {"1", "100"}, {"0", "-1", "2147483648"}},
      {"seed",
       {"0", "-1", "-9223372036854775808", "9223372036854775807", "18446744073709551615", "null"},
       {}},
  };
  for (const Bounds& bounds : all) {
    const std::string name = std::string("\"") + bounds.name + "\":";
    for (const char* value : bounds.good) taken(rows, name + value);
    for (const char* value : bounds.bad) refused(rows, name + value, "invalid_value");
    for (const char* value : {"\"1\"", "true", "[1]", "{}"}) refused(rows, name + value, "invalid_type");
  }
  for (const char* name : {"n", "top_k", "max_tokens", "seed"}) {
    refused(rows, std::string("\"") + name + "\":1.5", "invalid_type");
  }
  refused(rows, R"("seed":18446744073709551616)", "invalid_type");
  refused(rows, R"("max_tokens":3,"max_completion_tokens":4)", "invalid_value");
  refused(rows, R"("max_tokens":2147483647)", "context_length_exceeded");
  refused(rows, R"("max_tokens":200)", "context_length_exceeded");
}

void add_stops(Rows& rows) {
  taken(rows, R"("stop":"x")");
  taken(rows, R"("stop":[])");
  taken(rows, "\"stop\":\"" + std::string(1024, 's') + "\"");
  taken(rows, "\"stop\":[" + repeated("\"a\",", 15) + "\"b\"]");
  refused(rows, "\"stop\":[" + repeated("\"a\",", 16) + "\"b\"]", "invalid_value");
  refused(rows, "\"stop\":\"" + std::string(1025, 's') + "\"", "invalid_value");
  refused(rows, R"("stop":"")", "invalid_value");
  refused(rows, R"("stop":["a",""])", "invalid_value");
  for (const char* value : {"1", "true", "{}", "[1]", "[null]", "[[\"a\"]]"}) {
    refused(rows, std::string("\"stop\":") + value, "invalid_type");
  }
}

void add_switches(Rows& rows) {
  for (const char* name : {"stream", "logprobs", "parallel_tool_calls"}) {
    for (const char* value : {"1", "0", "\"true\"", "\"\"", "[]", "{}"}) {
      refused(rows, std::string("\"") + name + "\":" + value, "invalid_type");
    }
  }
  taken(rows, R"("logprobs":true,"top_logprobs":20)");
  refused(rows, R"("logprobs":true,"top_logprobs":21)", "invalid_value");
  refused(rows, R"("logprobs":true,"top_logprobs":-1)", "invalid_value");
  refused(rows, R"("top_logprobs":1)", "invalid_value");
  refused(rows, R"("stream_options":{"include_usage":true})", "invalid_value");
  refused(rows, R"("stream":true,"stream_options":{"include_usage":1})", "invalid_type");
  refused(rows, R"("stream":true,"stream_options":[])", "invalid_type");
  refused(rows, R"("stream":true,"stream_options":{"usage":true})", "unknown_parameter");
  for (const char* value : {"1", "[]", "{}", "true"})
    refused(rows, std::string("\"user\":") + value, "invalid_type");
  for (const char* field :
       {R"("functions":[{}])", R"("function_call":"auto")", R"("store":true)", R"("modalities":["audio"])",
        R"("audio":{})", R"("reasoning_effort":"high")", R"("service_tier":"flex")"}) {
    refused(rows, field, "unsupported_parameter");
  }
}

void add_messages(Rows& rows) {
  const auto refuse = [&](const std::string& messages, const std::string& code) {
    rows.push_back({"messages " + messages, chat_bytes(R"({"model":"org/toy","messages":)" + messages + "}"),
                    400, code});
  };
  refuse("null", "missing_required_parameter");
  refuse("[]", "invalid_value");
  for (const char* wrong : {"\"hi\"", "{}", "1", "[null]", "[[]]", "[\"hi\"]"}) refuse(wrong, "invalid_type");
  refuse(R"([{"content":"x"}])", "missing_required_parameter");
  refuse(R"([{"role":"user"}])", "missing_required_parameter");
  refuse(R"([{"role":"user","content":null}])", "missing_required_parameter");
  refuse(R"([{"role":"tool","content":"x"}])", "missing_required_parameter");
  refuse(R"([{"role":5,"content":"x"}])", "invalid_type");
  for (const char* role : {"", "USER", "user ", "root", "user\\u0000"}) {
    refuse(std::string("[{\"role\":\"") + role + "\",\"content\":\"x\"}]", "invalid_value");
  }
  for (const char* content : {"5", "{}", "[]", "true", "[5]", "[\"x\"]"}) {
    refuse(std::string("[{\"role\":\"user\",\"content\":") + content + "}]", "invalid_type");
  }
  refuse(R"([{"role":"user","content":[{"type":"text"}]}])", "missing_required_parameter");
  refuse(R"([{"role":"user","content":[{"text":"x"}]}])", "unsupported_content");
  refuse(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}])",
         "unsupported_content");
  refuse(R"([{"role":"user","content":[{"type":"text","text":"x","more":1}]}])", "unknown_parameter");
  refuse(R"([{"role":"user","content":"x","more":1}])", "unknown_parameter");
  refuse(R"([{"role":"user","content":"x","tool_calls":[{}]}])", "unsupported_parameter");
  refuse(R"([{"role":"user","content":")" + std::string(60000, 'x') + "\"}]", "context_length_exceeded");
}

void add_prompts(Rows& rows) {
  const auto refuse = [&](const std::string& prompt, const std::string& code) {
    rows.push_back({"prompt " + prompt.substr(0, 60),
                    text_bytes(R"({"model":"org/toy","prompt":)" + prompt + "}"), 400, code});
  };
  refuse("null", "missing_required_parameter");
  for (const char* value : {"[]", "\"\"", "[-1]", "[257]", "[1,9223372036854775807]"})
    refuse(value, "invalid_value");
  for (const char* value : {"5", "{}", "true", "[null]", "[[]]", "[1.5]", "[1,\"a\"]", "[1,[2]]", "[[\"a\"]]",
                            "[{}]", "[18446744073709551615]", "[[[1]]]"}) {
    refuse(value, "invalid_type");
  }
  refuse("[\"a\",[1]]", "invalid_value");
  refuse("[" + repeated("\"a\",", 64) + "\"a\"]", "invalid_value");
  refuse("[" + repeated("1,", 400) + "1]", "context_length_exceeded");
  rows.push_back({"every token id", text_with(R"("max_tokens":1,"logprobs":20)"), 200, ""});
  rows.push_back({"64 prompts twice",
                  text_bytes(R"({"model":"org/toy","n":2,"prompt":[)" + repeated("\"a\",", 63) + "\"a\"]}"),
                  400, "invalid_value"});
  for (const auto& [field, code] :
       std::vector<std::pair<std::string, std::string>>{{R"("logprobs":21)", "invalid_value"},
                                                        {R"("logprobs":-1)", "invalid_value"},
                                                        {R"("logprobs":true)", "invalid_type"},
                                                        {R"("suffix":"x")", "unsupported_parameter"},
                                                        {R"("best_of":2)", "unsupported_parameter"},
                                                        {R"("tools":[{}])", "unsupported_parameter"},
                                                        {R"("messages":[])", "unknown_parameter"},
                                                        {R"("max_tokens":199)", "context_length_exceeded"}}) {
    rows.push_back({"completion " + field, text_with(field), 400, code});
  }
}

void add_models(Rows& rows) {
  const auto model = [&](const std::string& value, int status, const std::string& code) {
    rows.push_back({"model " + value.substr(0, 60),
                    chat_bytes("{\"model\":" + value + R"(,"messages":[{"role":"user","content":"x"}]})"),
                    status, code});
  };
  model("null", 400, "missing_required_parameter");
  model("\"\"", 400, "missing_required_parameter");
  for (const char* value : {"5", "[]", "{}", "true"}) model(value, 400, "invalid_type");
  model("\"gpt-4\"", 404, "model_not_found");
  model("\"ORG/TOY\"", 404, "model_not_found");
  model("\"org/toy\\u0000\"", 404, "model_not_found");
  model("\"../../etc/passwd\"", 404, "model_not_found");
  model("\"" + std::string(50000, 'm') + "\"", 404, "model_not_found");
}

}  // namespace

std::vector<HostileRow> parameter_rows() {
  Rows rows;
  add_numbers(rows);
  add_stops(rows);
  add_switches(rows);
  add_messages(rows);
  add_prompts(rows);
  add_models(rows);
  return rows;
}

}  // namespace assay::testing
