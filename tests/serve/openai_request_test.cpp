#include "serve/openai_request.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"

namespace assay {
namespace {

const ApiLimits kLimits{.n_vocab = 1000};

std::string chat(const std::string& more) {
  return R"({"model":"m","messages":[{"role":"user","content":"hi"}])" + (more.empty() ? "" : "," + more) +
         "}";
}
std::string completion(const std::string& more) {
  return R"({"model":"m","prompt":"hi")" + (more.empty() ? "" : "," + more) + "}";
}

TEST(ChatRequest, every_parameter_is_read) {
  const auto request = parse_chat_request(
      R"({"model":"org/m","messages":[{"role":"system","content":"be brief"},{"role":"developer","content":"or not"},
          {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b\u00e9"}],"name":"n"},
          {"role":"assistant","content":"c","refusal":null,"tool_calls":null,"annotations":[]}],
          "max_completion_tokens":7,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.05,"n":3,
          "stop":["x","yy"],"seed":-5,"presence_penalty":-2,"frequency_penalty":2,"repetition_penalty":1.1,
          "logit_bias":{"5":-100,"999":1.5},"logprobs":true,"top_logprobs":20,"stream":true,
          "stream_options":{"include_usage":true},"user":"u","response_format":{"type":"text"},
          "tools":[],"tool_choice":"none","store":false,"service_tier":"auto","audio":null})",
      kLimits);
  ASSERT_TRUE(request.has_value()) << request.error().message;
  const GenerationOptions& options = request->options;
  EXPECT_EQ(options.model, "org/m");
  EXPECT_EQ(options.max_tokens, 7);
  EXPECT_EQ(options.n, 3);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"x", "yy"}));
  EXPECT_TRUE(options.stream);
  EXPECT_TRUE(options.include_usage);
  const SamplingParams& sampling = options.sampling;
  EXPECT_EQ(sampling.temperature, 0.5F);
  EXPECT_EQ(sampling.top_p, 0.9F);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_EQ(sampling.min_p, 0.05F);
  EXPECT_EQ(sampling.presence_penalty, -2);
  EXPECT_EQ(sampling.frequency_penalty, 2);
  EXPECT_EQ(sampling.repetition_penalty, 1.1F);
  EXPECT_EQ(sampling.seed, static_cast<uint64_t>(-5));
  EXPECT_TRUE(sampling.logprobs);
  EXPECT_EQ(sampling.top_logprobs, 20);
  ASSERT_EQ(sampling.logit_bias.size(), 2U);
  EXPECT_EQ(sampling.logit_bias[0], (std::pair<int32_t, float>{5, -100.0F}));
  EXPECT_EQ(sampling.logit_bias[1], (std::pair<int32_t, float>{999, 1.5F}));
  ASSERT_EQ(request->messages.size(), 4U);
  EXPECT_EQ(request->messages[1].role, "system");
  EXPECT_EQ(request->messages[2].content, "ab\xC3\xA9");
  EXPECT_EQ(request->messages[3].role, "assistant");
}

TEST(ChatRequest, defaults_are_openais) {
  const auto request = parse_chat_request(chat(""), kLimits);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->options.max_tokens, -1);
  EXPECT_EQ(request->options.n, 1);
  EXPECT_FALSE(request->options.stream);
  EXPECT_FALSE(request->options.sampling.logprobs);
  EXPECT_EQ(request->options.sampling.temperature, 1.0F);
  EXPECT_EQ(request->options.sampling.top_p, 1.0F);
  EXPECT_FALSE(request->options.sampling.seed.has_value());
  EXPECT_EQ(parse_completion_request(completion(""), kLimits)->options.max_tokens, 16);
}

TEST(ChatRequest, null_means_absent) {
  const auto request = parse_chat_request(
      chat(
          R"("max_tokens":null,"temperature":null,"stop":null,"seed":null,"stream":null,"stream_options":null,
             "logit_bias":null,"logprobs":null,"top_logprobs":null,"n":null,"tools":null,"response_format":null)"),
      kLimits);
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->options.sampling.temperature, 1.0F);
}

struct Bad {
  std::string body;
  std::string code;
  std::string param;
};

void expect_refused(const std::vector<Bad>& cases, bool is_chat) {
  for (const Bad& c : cases) {
    ApiError error{.status = 0};
    if (const auto as_chat = parse_chat_request(c.body, kLimits); is_chat && !as_chat)
      error = as_chat.error();
    if (const auto as_text = parse_completion_request(c.body, kLimits); !is_chat && !as_text)
      error = as_text.error();
    EXPECT_EQ(error.status, 400) << c.body;
    EXPECT_EQ(error.code, c.code) << c.body << ": " << error.message;
    EXPECT_EQ(error.param, c.param) << c.body << ": " << error.message;
    EXPECT_FALSE(error.message.empty());
  }
}

std::string message(const std::string& fields) {
  return R"({"model":"m","messages":[{)" + fields + "}]}";
}

const std::string kOneTool = R"("tools":[{"type":"function","function":{"name":"f"}}])";

TEST(ChatRequest, tools_and_their_messages_are_read) {
  const auto request = parse_chat_request(
      R"({"model":"m","messages":[{"role":"user","content":"weather?"},
          {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","index":0,
            "function":{"name":"get","arguments":"{\"city\": \"Oslo\"}"}}]},
          {"role":"tool","tool_call_id":"c1","name":"get","content":"7 degrees"}],
          "tools":[{"type":"function","function":{"name":"get","description":"d","strict":true,
            "parameters":{"type":"object","properties":{"city":{"type":"string"}}}}},
            {"type":"function","function":{"name":"put"}}],
          "tool_choice":{"type":"function","function":{"name":"put"}},"parallel_tool_calls":false})",
      kLimits);
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->tools.choice, ToolRequest::Choice::kNamed);
  EXPECT_EQ(request->tools.named, 1U);
  EXPECT_FALSE(request->tools.parallel);
  ASSERT_EQ(request->tools.functions.size(), 2U);
  EXPECT_TRUE(request->tools.functions[0].strict);
  EXPECT_TRUE(request->tools.functions[0].parameters.is_object());
  EXPECT_TRUE(request->tools.functions[1].parameters.is_null());
  const ChatMessage& call = request->messages.at(1);
  // As templates expect them: arguments are JSON, not a string of it.
  EXPECT_EQ(call.tool_calls.at(0).at("function").at("arguments").at("city").as_string(), "Oslo");
  EXPECT_EQ(request->messages.at(2).tool_call_id, "c1");
  EXPECT_EQ(parse_chat_request(chat(kOneTool), kLimits)->tools.choice, ToolRequest::Choice::kAuto);
  EXPECT_EQ(parse_chat_request(chat(kOneTool + R"(,"tool_choice":"required")"), kLimits)->tools.choice,
            ToolRequest::Choice::kRequired);
  EXPECT_FALSE(parse_chat_request(chat(kOneTool + R"(,"tool_choice":"none")"), kLimits)->tools.offered());
}

TEST(ChatRequest, response_formats_are_read) {
  using Kind = ResponseFormat::Kind;
  const auto format = [](const std::string& text) {
    const auto request = parse_chat_request(chat(R"("response_format":)" + text), kLimits);
    EXPECT_TRUE(request.has_value()) << request.error().message;
    return request->options.response_format;
  };
  EXPECT_EQ(format(R"({"type":"text"})").kind, Kind::kText);
  EXPECT_EQ(format(R"({"type":"json_object"})").kind, Kind::kJsonObject);
  const auto schema = format(
      R"({"type":"json_schema","json_schema":{"name":"n","description":"d","strict":true,"schema":{"type":"null"}}})");
  EXPECT_EQ(schema.kind, Kind::kJsonSchema);
  EXPECT_EQ(schema.schema.at("type").as_string(), "null");
  EXPECT_NE(grammar_key(schema), grammar_key(format(R"({"type":"json_object"})")));
}

TEST(ChatRequest, bad_parameters_are_refused_by_name) {
  expect_refused(
      {
          {chat(R"("max_tokens":0)"), "invalid_value", "max_tokens"},
          {chat(R"("max_tokens":-1)"), "invalid_value", "max_tokens"},
          {chat(R"("max_tokens":2147483648)"), "invalid_value", "max_tokens"},
          {chat(R"("max_tokens":99999999999999999999999)"), "invalid_value", "max_tokens"},
          {chat(R"("max_tokens":1.5)"), "invalid_type", "max_tokens"},
          {chat(R"("max_tokens":"9")"), "invalid_type", "max_tokens"},
          {chat(R"("max_tokens":true)"), "invalid_type", "max_tokens"},
          {chat(R"("max_tokens":3,"max_completion_tokens":4)"), "invalid_value", "max_tokens"},
          {chat(R"("max_completion_tokens":-4)"), "invalid_value", "max_completion_tokens"},
          {chat(R"("n":0)"), "invalid_value", "n"},
          {chat(R"("n":17)"), "invalid_value", "n"},
          {chat(R"("n":-9223372036854775808)"), "invalid_value", "n"},
          {chat(R"("n":[1])"), "invalid_type", "n"},
          {chat(R"("temperature":-0.1)"), "invalid_value", "temperature"},
          {chat(R"("temperature":2.1)"), "invalid_value", "temperature"},
          {chat(R"("temperature":1e999)"), "invalid_value", "temperature"},
          {chat(R"("temperature":"hot")"), "invalid_type", "temperature"},
          {chat(R"("top_p":0)"), "invalid_value", "top_p"},
          {chat(R"("top_p":1.01)"), "invalid_value", "top_p"},
          {chat(R"("top_k":-2)"), "invalid_value", "top_k"},
          {chat(R"("min_p":-0.5)"), "invalid_value", "min_p"},
          {chat(R"("presence_penalty":2.5)"), "invalid_value", "presence_penalty"},
          {chat(R"("frequency_penalty":-2.5)"), "invalid_value", "frequency_penalty"},
          {chat(R"("repetition_penalty":0)"), "invalid_value", "repetition_penalty"},
          {chat(R"("seed":1.5)"), "invalid_type", "seed"},
          {chat(R"("seed":"1")"), "invalid_type", "seed"},
          {chat(R"("stop":"")"), "invalid_value", "stop"},
          {chat(R"("stop":["a",""])"), "invalid_value", "stop"},
          {chat(R"("stop":["a",5])"), "invalid_type", "stop"},
          {chat(R"("stop":5)"), "invalid_type", "stop"},
          {chat(R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])"),
           "invalid_value", "stop"},
          {chat(R"("stop":")" + std::string(1025, 'x') + "\""), "invalid_value", "stop"},
          {chat(R"("logit_bias":[])"), "invalid_type", "logit_bias"},
          {chat(R"("logit_bias":{"x":1})"), "invalid_value", "logit_bias"},
          {chat(R"("logit_bias":{"1000":1})"), "invalid_value", "logit_bias"},
          {chat(R"("logit_bias":{"-1":1})"), "invalid_value", "logit_bias"},
          {chat(R"("logit_bias":{"1 ":1})"), "invalid_value", "logit_bias"},
          {chat(R"("logit_bias":{"1":101})"), "invalid_value", "logit_bias.1"},
          {chat(R"("logit_bias":{"1":"5"})"), "invalid_type", "logit_bias.1"},
          {chat(R"("logit_bias":{"1":null})"), "invalid_type", "logit_bias"},
          {chat(R"("logprobs":5)"), "invalid_type", "logprobs"},
          {chat(R"("top_logprobs":5)"), "invalid_value", "top_logprobs"},
          {chat(R"("logprobs":true,"top_logprobs":21)"), "invalid_value", "top_logprobs"},
          {chat(R"("stream":"yes")"), "invalid_type", "stream"},
          {chat(R"("stream":1)"), "invalid_type", "stream"},
          {chat(R"("stream_options":{"include_usage":true})"), "invalid_value", "stream_options"},
          {chat(R"("stream":true,"stream_options":{"include_usage":1})"), "invalid_type",
           "stream_options.include_usage"},
          {chat(R"("stream":true,"stream_options":{"x":1})"), "unknown_parameter", "stream_options.x"},
          {chat(R"("stream":true,"stream_options":true)"), "invalid_type", "stream_options"},
          {chat(R"("response_format":{"type":"xml"})"), "invalid_value", "response_format.type"},
          {chat(R"("response_format":{"type":"json_object","schema":{}})"), "unknown_parameter",
           "response_format.schema"},
          {chat(R"("response_format":{"type":"json_schema"})"), "missing_required_parameter",
           "response_format.json_schema"},
          {chat(R"("response_format":{"type":"json_schema","json_schema":{}})"), "missing_required_parameter",
           "response_format.json_schema.name"},
          {chat(R"("response_format":{"type":"json_schema","json_schema":{"name":"x"}})"),
           "missing_required_parameter", "response_format.json_schema.schema"},
          {chat(R"("response_format":{"type":"json_schema","json_schema":{"name":"x","schema":5}})"),
           "invalid_type", "response_format.json_schema.schema"},
          {chat(R"("response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{},"x":1}})"),
           "unknown_parameter", "response_format.json_schema.x"},
          {chat(
               R"("response_format":{"type":"json_object"},"tools":[{"type":"function","function":{"name":"f"}}])"),
           "invalid_value", "response_format"},
          {chat(R"("response_format":{})"), "missing_required_parameter", "response_format.type"},
          {chat(R"("response_format":"text")"), "invalid_type", "response_format"},
          {chat(R"("tools":{})"), "invalid_type", "tools"},
          {chat(R"("tools":[5])"), "invalid_type", "tools[0]"},
          {chat(R"("tools":[{"type":"function"}])"), "missing_required_parameter", "tools[0].function"},
          {chat(R"("tools":[{"type":"web_search"}])"), "invalid_value", "tools[0].type"},
          {chat(R"("tools":[{"type":"function","function":{}}])"), "missing_required_parameter",
           "tools[0].function.name"},
          {chat(R"("tools":[{"type":"function","function":{"name":"a b"}}])"), "invalid_value",
           "tools[0].function.name"},
          {chat(R"("tools":[{"type":"function","function":{"name":"f","parameters":[]}}])"), "invalid_type",
           "tools[0].function.parameters"},
          {chat(R"("tools":[{"type":"function","function":{"name":"f","x":1}}])"), "unknown_parameter",
           "tools[0].function.x"},
          {chat(
               R"("tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}])"),
           "invalid_value", "tools[1].function.name"},
          {chat(R"("tool_choice":"auto")"), "invalid_value", "tool_choice"},
          {chat(R"("tool_choice":5)"), "invalid_value", "tool_choice"},
          {chat(kOneTool + R"(,"tool_choice":"always")"), "invalid_type", "tool_choice"},
          {chat(kOneTool + R"(,"tool_choice":{"type":"function"})"), "missing_required_parameter",
           "tool_choice.function"},
          {chat(kOneTool + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})"), "invalid_value",
           "tool_choice.function.name"},
          {chat(R"("parallel_tool_calls":1)"), "invalid_type", "parallel_tool_calls"},
          {chat(R"("functions":[{}])"), "unsupported_parameter", "functions"},
          {chat(R"("store":true)"), "unsupported_parameter", "store"},
          {chat(R"("modalities":["audio"])"), "unsupported_parameter", "modalities"},
          {chat(R"("audio":{})"), "unsupported_parameter", "audio"},
          {chat(R"("user":5)"), "invalid_type", "user"},
          {chat(R"("temprature":0.5)"), "unknown_parameter", "temprature"},
          {chat(R"("prompt":"x")"), "unknown_parameter", "prompt"},
          {chat(R"("":1)"), "unknown_parameter", ""},
          {R"({"messages":[{"role":"user","content":"hi"}]})", "missing_required_parameter", "model"},
          {R"({"model":5,"messages":[{"role":"user","content":"hi"}]})", "invalid_type", "model"},
          {R"({"model":"","messages":[{"role":"user","content":"hi"}]})", "missing_required_parameter",
           "model"},
          {R"({"model":"m"})", "missing_required_parameter", "messages"},
          {R"({"model":"m","messages":[]})", "invalid_value", "messages"},
          {R"({"model":"m","messages":"hi"})", "invalid_type", "messages"},
          {R"({"model":"m","messages":["hi"]})", "invalid_type", "messages[0]"},
          {message(R"("content":"x")"), "missing_required_parameter", "messages[0].role"},
          {message(R"("role":"king","content":"x")"), "invalid_value", "messages[0].role"},
          {message(R"("role":"tool","content":"x")"), "missing_required_parameter",
           "messages[0].tool_call_id"},
          {message(R"("role":"user","content":"x","tool_calls":[{}])"), "unsupported_parameter",
           "messages[0].tool_calls"},
          {message(R"("role":"user","content":"x","tool_call_id":"a")"), "unknown_parameter",
           "messages[0].tool_call_id"},
          {message(R"("role":7,"content":"x")"), "invalid_type", "messages[0].role"},
          {message(R"("role":"user")"), "missing_required_parameter", "messages[0].content"},
          {message(R"("role":"user","content":null)"), "missing_required_parameter", "messages[0].content"},
          {message(R"("role":"user","content":5)"), "invalid_type", "messages[0].content"},
          {message(R"("role":"user","content":[])"), "invalid_type", "messages[0].content"},
          {message(R"("role":"user","content":["x"])"), "invalid_type", "messages[0].content[0]"},
          {message(R"("role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}])"),
           "unsupported_content", "messages[0].content[0].type"},
          {message(R"("role":"user","content":[{"type":"text"}])"), "missing_required_parameter",
           "messages[0].content[0].text"},
          {message(R"("role":"user","content":[{"type":"text","text":"a","x":1}])"), "unknown_parameter",
           "messages[0].content[0].x"},
          {message(R"("role":"user","content":"x","colour":"red")"), "unknown_parameter",
           "messages[0].colour"},
          {message(R"("role":"assistant","content":"x","tool_calls":[{}])"), "invalid_value",
           "messages[0].tool_calls[0].type"},
          {message(R"("role":"assistant","tool_calls":[])"), "missing_required_parameter",
           "messages[0].content"},
          {message(
               R"("role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{"}}])"),
           "invalid_value", "messages[0].tool_calls[0].function.arguments"},
      },
      true);
}

TEST(ChatRequest, broken_json_says_where) {
  const std::string deep(40, '[');
  expect_refused(
      {
          {"", "invalid_json", ""},
          {" ", "invalid_json", ""},
          {"{", "invalid_json", ""},
          {"[]", "invalid_json", ""},
          {"5", "invalid_json", ""},
          {"null", "invalid_json", ""},
          {"{\"model\":\"m\",}", "invalid_json", ""},
          {"{'model':'m'}", "invalid_json", ""},
          {chat("") + "x", "invalid_json", ""},
          {chat("") + chat(""), "invalid_json", ""},
          {chat("\"temperature\":NaN"), "invalid_json", ""},
          {chat("\"temperature\":Infinity"), "invalid_json", ""},
          {chat("\"temperature\":-nan"), "invalid_json", ""},
          {message("\"role\":\"user\",\"content\":\"\xff\""), "invalid_json", ""},
          {message("\"role\":\"user\",\"content\":\"\xC0\xAF\""), "invalid_json", ""},
          {message("\"role\":\"user\",\"content\":\"\xED\xA0\x80\""), "invalid_json", ""},
          {message("\"role\":\"user\",\"content\":\"\\ud800\""), "invalid_json", ""},
          {message("\"role\":\"user\",\"content\":\"\\udc00x\""), "invalid_json", ""},
          {message("\"role\":\"user\",\"content\":\"line\nbreak\""), "invalid_json", ""},
          {R"({"model":"m","messages":)" + deep + "}", "json_too_deep", ""},
          {std::string(100000, '['), "json_too_deep", ""},
          {std::string("\x00{}", 3), "invalid_json", ""},
          {"\xEF\xBB\xBF" + chat(""), "invalid_json", ""},
      },
      true);
  EXPECT_NE(parse_chat_request("{\"model\":\"m\",}", kLimits).error().message.find("byte"),
            std::string::npos);
  EXPECT_TRUE(parse_chat_request(" \r\n\t" + chat("") + " \r\n\t", kLimits).has_value());
}

TEST(CompletionRequest, prompts_of_every_form_are_read) {
  const auto parse = [](const std::string& prompt) {
    return parse_completion_request(R"({"model":"m","prompt":)" + prompt + "}", kLimits);
  };
  EXPECT_EQ(std::get<std::string>(parse(R"("a")")->prompts.at(0)), "a");
  const auto strings = parse(R"(["a","b",""])");
  ASSERT_EQ(strings->prompts.size(), 3U);
  EXPECT_EQ(std::get<std::string>(strings->prompts[2]), "");
  EXPECT_EQ(std::get<std::vector<int32_t>>(parse("[1,2,999]")->prompts.at(0)),
            (std::vector<int32_t>{1, 2, 999}));
  const auto lists = parse("[[1],[2,3]]");
  ASSERT_EQ(lists->prompts.size(), 2U);
  EXPECT_EQ(std::get<std::vector<int32_t>>(lists->prompts[1]), (std::vector<int32_t>{2, 3}));
  const auto logprobs = parse_completion_request(completion(R"("logprobs":0)"), kLimits);
  EXPECT_TRUE(logprobs->options.sampling.logprobs);
  EXPECT_EQ(logprobs->options.sampling.top_logprobs, 0);
  EXPECT_FALSE(parse_completion_request(completion(R"("echo":false,"suffix":"","best_of":1)"), kLimits)
                   ->options.sampling.logprobs);
}

TEST(CompletionRequest, bad_parameters_are_refused_by_name) {
  const auto prompt = [](const std::string& value) { return R"({"model":"m","prompt":)" + value + "}"; };
  std::string many = "[\"x\"";
  for (int i = 0; i < 64; ++i) many += ",\"x\"";
  expect_refused(
      {
          {R"({"model":"m"})", "missing_required_parameter", "prompt"},
          {prompt("null"), "missing_required_parameter", "prompt"},
          {prompt("5"), "invalid_type", "prompt"},
          {prompt("{}"), "invalid_type", "prompt"},
          {prompt("[]"), "invalid_value", "prompt"},
          {prompt("[[]]"), "invalid_type", "prompt"},
          {prompt("[null]"), "invalid_type", "prompt"},
          {prompt("[1,\"a\"]"), "invalid_type", "prompt"},
          {prompt("[\"a\",1]"), "invalid_value", "prompt"},
          {prompt("[1,2.5]"), "invalid_type", "prompt"},
          {prompt("[1000]"), "invalid_value", "prompt"},
          {prompt("[-1]"), "invalid_value", "prompt"},
          {prompt("[[1],[1000]]"), "invalid_value", "prompt"},
          {prompt("[18446744073709551615]"), "invalid_type", "prompt"},
          {prompt(many + "]"), "invalid_value", "prompt"},
          {R"({"model":"m","prompt":["a","b","c","d","e"],"n":16})", "invalid_value", "n"},
          {completion(R"("tools":[{"type":"function"}])"), "unsupported_parameter", "tools"},
          {completion(R"("tool_choice":"auto")"), "unsupported_parameter", "tool_choice"},
          {completion(R"("response_format":{"type":"json_schema"})"), "missing_required_parameter",
           "response_format.json_schema"},
          {completion(R"("echo":"yes")"), "invalid_type", "echo"},
          {completion(R"("suffix":"x")"), "unsupported_parameter", "suffix"},
          {completion(R"("best_of":2)"), "unsupported_parameter", "best_of"},
          {completion(R"("logprobs":true)"), "invalid_type", "logprobs"},
          {completion(R"("logprobs":21)"), "invalid_value", "logprobs"},
          {completion(R"("max_tokens":0)"), "invalid_value", "max_tokens"},
          {completion(R"("max_completion_tokens":5)"), "unknown_parameter", "max_completion_tokens"},
          {completion(R"("messages":[])"), "unknown_parameter", "messages"},
      },
      false);
}

TEST(RequestParsing, mutated_bodies_never_crash_and_never_accept_nonsense) {
  const std::string seeds[] = {
      chat(
          R"("stop":["a"],"logit_bias":{"5":1},"stream":true,"stream_options":{"include_usage":true},"n":2)"),
      completion(R"("seed":5,"temperature":0.5,"logprobs":3)")};
  int accepted = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Random random(seed, "mutations");
    std::string body = seeds[seed % 2];
    for (uint64_t i = 0; i <= random.below(4); ++i) {
      const size_t at = random.below(body.size());
      switch (random.below(3)) {
        case 0:
          body[at] =
              random.below(4) == 0 ? static_cast<char>(random.below(256)) : "0123456789"[random.below(10)];
          break;
        case 1:
          body.erase(at, 1 + random.below(4));
          break;
        default:
          body.insert(at, 1, "{}[]\",:0-9e.tfn"[random.below(15)]);
          break;
      }
      if (body.empty()) body = "{";
    }
    const auto as_chat = parse_chat_request(body, kLimits);
    const auto as_text = parse_completion_request(body, kLimits);
    for (const GenerationOptions* options :
         {as_chat ? &as_chat->options : nullptr, as_text ? &as_text->options : nullptr}) {
      if (options == nullptr) continue;
      ++accepted;
      EXPECT_TRUE(options->n >= 1 && options->n <= kLimits.max_choices);
      EXPECT_TRUE(options->sampling.temperature >= 0 && options->sampling.temperature <= 2);
      EXPECT_TRUE(options->max_tokens == -1 || options->max_tokens >= 1);
    }
    EXPECT_FALSE(as_chat && as_text) << body;
  }
  EXPECT_GT(accepted, 20);  // the test would say little if every mutation broke the syntax
}

TEST(RequestParsing, choices_have_seeds_of_their_own) {
  SamplingParams sampling;
  EXPECT_FALSE(sampling_of_choice(sampling, 3).seed.has_value());
  sampling.seed = UINT64_MAX;
  EXPECT_EQ(sampling_of_choice(sampling, 0).seed, UINT64_MAX);
  EXPECT_EQ(sampling_of_choice(sampling, 1).seed, 0U);
}

}  // namespace
}  // namespace assay
