// Routes beside chat and plain completions: echoed prompts, embeddings, tokens.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "serve/base64.h"
#include "serve/embedding_job.h"
#include "serve/served.h"

namespace assay {
namespace {

using testing::events_of;
using testing::eventually;
using testing::json_of;
using testing::RawResponse;
using testing::RawSocket;
using testing::Served;
using testing::text_at;

namespace json = boost::json;

// --- echo ---

TEST(Echo, prompt_comes_before_the_answer) {
  const Served served;
  const auto made = json_of(served.complete(R"("echo":true,"max_tokens":5)"));
  EXPECT_EQ(text_at(made, "/choices/0/text"), "hiHello");
  EXPECT_EQ(text_at(made, "/choices/0/logprobs"), "null");
  EXPECT_EQ(text_at(made, "/usage/completion_tokens"), "5");
  EXPECT_FALSE(served.engine->submitted()[0].prompt_output.wanted());
}

TEST(Echo, with_logprobs_lists_every_token_of_prompt_and_answer) {
  const Served served;
  const auto made = json_of(served.complete(R"("echo":true,"max_tokens":1,"logprobs":2)"));
  const auto& logprobs = made.at("choices").at(0).at("logprobs").as_object();
  EXPECT_EQ(json::serialize(logprobs.at("tokens")), R"(["h","i","H"])");
  EXPECT_EQ(json::serialize(logprobs.at("text_offset")), "[0,1,2]");
  const auto& values = logprobs.at("token_logprobs").as_array();
  ASSERT_EQ(values.size(), 3U);
  EXPECT_TRUE(values[0].is_null());
  EXPECT_EQ(values[1].as_double(), -0.5);
  EXPECT_EQ(values[2].as_double(), -0.25);
  const auto& tops = logprobs.at("top_logprobs").as_array();
  EXPECT_TRUE(tops.at(0).is_null());
  EXPECT_EQ(json::serialize(tops.at(1)), R"({"i":-5E-1,"j":-1.5E0})");
  EXPECT_TRUE(served.engine->submitted()[0].ignore_end_of_generation) << "the last entry must be there";
}

TEST(Echo, without_an_answer_scores_the_prompt) {
  const Served served;
  const auto made = json_of(served.complete(R"("echo":true,"max_tokens":0,"logprobs":0)"));
  EXPECT_EQ(text_at(made, "/choices/0/text"), "hi");
  EXPECT_EQ(text_at(made, "/choices/0/finish_reason"), "length");
  EXPECT_EQ(text_at(made, "/choices/0/logprobs/tokens"), R"(["h","i"])");
  EXPECT_EQ(served.complete(R"("echo":true,"max_tokens":0)").status, 200);
  EXPECT_TRUE(served.engine->submitted()[1].prompt_output.wanted());
}

TEST(Echo, ids_are_echoed_as_text_for_every_choice) {
  const Served served;
  const auto made = json_of(
      served.post("/v1/completions",
                  R"({"model":"default","prompt":[[104,105],[226,130]],"n":2,"echo":true,"max_tokens":1})"));
  EXPECT_EQ(text_at(made, "/choices/0/text"), "hiH");
  EXPECT_EQ(text_at(made, "/choices/1/text"), "hiH");
  EXPECT_EQ(text_at(made, "/choices/3/text"), "\xEF\xBF\xBDH") << "half a character";
}

TEST(Echo, stream_begins_with_the_prompt) {
  const Served served;
  const auto events =
      events_of(served.complete(R"("echo":true,"max_tokens":2,"logprobs":0,"stream":true)").body);
  std::string text, tokens;
  for (const std::string& event : events) {
    if (event == "[DONE]") continue;
    const auto value = json::parse(event);
    text += text_at(value, "/choices/0/text");
    if (const auto* found = value.at("choices").at(0).at("logprobs").if_object())
      for (const auto& token : found->at("tokens").as_array()) tokens += token.as_string().c_str();
  }
  EXPECT_EQ(text, "hiHe");
  EXPECT_EQ(tokens, "hiHe");
}

// --- embeddings ---

std::string embedding_body(const std::string& input, const std::string& more = "") {
  return R"({"model":"default","input":)" + input + (more.empty() ? "" : "," + more) + "}";
}

TEST(Embeddings, every_form_of_input_is_taken) {
  const Served served;
  const std::pair<const char*, size_t> inputs[] = {
      {R"("hi")", 1}, {R"(["hi","ho","ha"])", 3}, {"[104,105]", 1}, {"[[104],[105,106]]", 2}};
  for (const auto& [input, count] : inputs) {
    const RawResponse response = served.post("/v1/embeddings", embedding_body(input));
    ASSERT_EQ(response.status, 200) << response.body;
    const auto made = json_of(response);
    EXPECT_EQ(text_at(made, "/object"), "list");
    const auto& data = made.at("data").as_array();
    ASSERT_EQ(data.size(), count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(data[i].at("index").to_number<size_t>(), i);
  }
  EXPECT_EQ(text_at(json_of(served.post("/v1/embeddings", embedding_body(R"(["abc","de"])"))),
                    "/usage/total_tokens"),
            "5");
  for (const auto& request : served.engine->submitted()) {
    EXPECT_EQ(request.max_tokens, 0);
    EXPECT_EQ(request.prompt_output.pooling, Pooling::kMean);
  }
}

TEST(Embeddings, base64_holds_the_same_numbers) {
  const Served served;
  const auto plain = json_of(served.post("/v1/embeddings", embedding_body(R"("hello")")));
  const auto packed =
      json_of(served.post("/v1/embeddings", embedding_body(R"("hello")", R"("encoding_format":"base64")")));
  const auto& numbers = plain.at("data").at(0).at("embedding").as_array();
  const auto bytes = decode_base64(text_at(packed, "/data/0/embedding"));
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), numbers.size() * 4);
  double squares = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    float value = 0;
    std::memcpy(&value, bytes->data() + 4 * i, 4);
    EXPECT_EQ(static_cast<double>(value), numbers[i].to_number<double>());
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(squares, 1, 1e-6);
}

TEST(Embeddings, a_long_list_is_fed_a_few_at_a_time_in_order) {
  const Served served({.max_active = 20});
  std::string list = "[";
  for (int i = 0; i < 300; ++i) list += (i > 0 ? ",[" : "[") + std::to_string(97 + i % 26) + "]";
  const auto made = json_of(served.post("/v1/embeddings", embedding_body(list + "]")));
  EXPECT_EQ(made.at("data").as_array().size(), 300U);
  const auto submitted = served.engine->submitted();
  ASSERT_EQ(submitted.size(), 300U);
  for (size_t i = 0; i < submitted.size(); ++i)
    EXPECT_EQ(submitted[i].prompt.at(0), 97 + static_cast<int>(i % 26));
}

TEST(Embeddings, a_client_that_leaves_cancels_them) {
  const Served served;
  served.engine->hold();
  {
    RawSocket leaving(served.server->port());
    leaving.send(Served::post_text("/v1/embeddings", embedding_body(R"(["a","b"])")));
    ASSERT_TRUE(eventually([&] { return served.engine->active() == 2; }));
  }
  EXPECT_TRUE(eventually([&] { return served.engine->active() == 0; }));
}

TEST(Embeddings, refused_ones_say_why) {
  const Served served({.max_active = 0});
  struct Case {
    std::string body;
    int status;
    const char* code;
    const char* param;
  };
  const Case cases[] = {
      {R"({"model":"default"})", 400, "missing_required_parameter", "input"},
      {R"({"input":"x"})", 400, "missing_required_parameter", "model"},
      {R"({"model":"other","input":"x"})", 404, "model_not_found", "model"},
      {embedding_body("[]"), 400, "invalid_value", "input"},
      {embedding_body(R"("")"), 400, "invalid_value", "input"},
      {embedding_body("3"), 400, "invalid_type", "input"},
      {embedding_body(R"(["a",[3]])"), 400, "invalid_value", "input"},
      {embedding_body("[99999]"), 400, "invalid_value", "input"},
      {embedding_body("\"" + std::string(250, 'x') + "\""), 400, "context_length_exceeded", "input"},
      {embedding_body(R"("x")", R"("encoding_format":"int8")"), 400, "invalid_value", "encoding_format"},
      {embedding_body(R"("x")", R"("dimensions":3)"), 400, "unsupported_parameter", "dimensions"},
      {embedding_body(R"("x")", R"("pooling":"max")"), 400, "invalid_value", "pooling"},
      {embedding_body(R"("x")", R"("temperature":1)"), 400, "unknown_parameter", "temperature"},
      {embedding_body(R"("x")"), 429, "queue_full", "null"},
  };
  for (const Case& wrong : cases) {
    const RawResponse response = served.post("/v1/embeddings", wrong.body);
    EXPECT_EQ(response.status, wrong.status) << wrong.body;
    EXPECT_EQ(text_at(json_of(response), "/error/code"), wrong.code) << wrong.body;
    EXPECT_EQ(text_at(json_of(response), "/error/param"), wrong.param) << wrong.body;
  }
}

TEST(Embeddings, zeros_stay_zeros) {
  std::vector<float> zeros(4, 0.0F), numbers = {3, 4};
  normalise(zeros);
  normalise(numbers);
  EXPECT_EQ(zeros, std::vector<float>(4, 0.0F));
  EXPECT_FLOAT_EQ(numbers[0], 0.6F);
  EXPECT_FLOAT_EQ(numbers[1], 0.8F);
}

// --- tokens ---

TEST(Tokens, text_and_conversations_are_counted) {
  const Served served;
  const auto text = json_of(served.post("/tokenize", R"({"prompt":"h\u00e9","return_token_strs":true})"));
  EXPECT_EQ(text_at(text, "/count"), "3");
  EXPECT_EQ(text_at(text, "/tokens"), "[104,195,169]");
  EXPECT_EQ(text_at(text, "/max_model_len"), "200");
  EXPECT_EQ(text.at("token_strs").at(0).as_string(), "h");
  const std::string messages = R"("messages":[{"role":"user","content":"hi"}])";
  const auto chat = json_of(served.post("/tokenize", "{\"model\":\"default\"," + messages + "}"));
  EXPECT_EQ(served.chat().status, 200);
  EXPECT_EQ(chat.at("tokens").as_array().size(), served.engine->submitted()[0].prompt.size());
  EXPECT_TRUE(chat.at("token_strs").is_null());
}

TEST(Tokens, special_tokens_in_a_prompt_are_parsed_unless_told_otherwise) {
  const Served served;
  EXPECT_EQ(text_at(json_of(served.post("/tokenize", R"({"prompt":"h<|end|>"})")), "/tokens"), "[104,256]");
  const auto text = json_of(served.post("/tokenize", R"({"prompt":"h<|end|>","parse_special":false})"));
  EXPECT_EQ(text_at(text, "/count"), "8");
  EXPECT_EQ(served.post("/v1/completions", R"({"model":"default","prompt":"h<|end|>"})").status, 200);
  EXPECT_EQ(served.post("/v1/completions", R"({"model":"default","prompt":"h<|end|>","parse_special":false})")
                .status,
            200);
  EXPECT_EQ(served.engine->submitted()[0].prompt.size(), 2U);
  EXPECT_EQ(served.engine->submitted()[1].prompt.size(), 8U);
}

TEST(Tokens, tokenizer_is_described) {
  const Served served;
  const auto info = json_of(served.get("/tokenizer_info"));
  EXPECT_EQ(text_at(info, "/eos_token"), "<|end|>");
  EXPECT_EQ(text_at(info, "/bos_token"), "null");
  EXPECT_EQ(text_at(info, "/vocab_size"), "257");
}

TEST(Tokens, ids_become_text) {
  const Served served;
  const auto made = json_of(served.post("/detokenize", R"({"tokens":[104,195,169,256]})"));
  EXPECT_EQ(text_at(made, "/prompt"), "h\u00e9<|end|>");
}

TEST(Tokens, wrong_requests_say_why) {
  const Served served;
  const std::pair<const char*, const char*> tokenize[] = {
      {R"({})", "prompt"},
      {R"({"prompt":"a","messages":[]})", "messages"},
      {R"({"prompt":3})", "prompt"},
      {R"({"prompt":"a","colour":1})", "colour"},
      {R"({"model":"other","prompt":"a"})", "model"},
      {R"({"messages":[{"role":"user","content":"a"}],"add_generation_prompt":false})",
       "add_generation_prompt"}};
  for (const auto& [body, param] : tokenize)
    EXPECT_EQ(text_at(json_of(served.post("/tokenize", body)), "/error/param"), param) << body;
  for (const char* body : {R"({"tokens":[-1]})", R"({"tokens":[257]})", R"({"tokens":"a"})", R"({})"})
    EXPECT_EQ(text_at(json_of(served.post("/detokenize", body)), "/error/param"), "tokens") << body;
}

}  // namespace
}  // namespace assay
