// The whole server on a real model: SmolLM2-135M-Instruct, Q4_1. Skipped where the file is absent.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "kernels/backend.h"
#include "serve/served.h"

namespace assay {
namespace {

using testing::events_of;
using testing::json_of;
using testing::RawResponse;
using testing::RawSocket;
using testing::text_at;

std::filesystem::path model_path() {
  return assay_home() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf";
}

// Loaded once for all tests.
struct RealServer {
  std::unique_ptr<ApiServer> server;
  std::string problem;

  RealServer() {
    if (const auto started = start(); !started) problem = started.error().message();
  }

  Result<void> start() {
    ASSIGN_OR_RETURN(std::shared_ptr<Backend> backend, make_cpu_backend("auto", 0));
    ASSIGN_OR_RETURN(const Precision precision, parse_precision("w=file a=int8 kv=bf16"));
    ASSIGN_OR_RETURN(const LoadedModel loaded,
                     LoadedModel::load(model_path(), precision, std::move(backend),
                                       {.max_batch_tokens = 256, .max_context = 1024}));
    ASSIGN_OR_RETURN(
        std::shared_ptr<Engine> engine,
        Engine::create(loaded.model(), loaded.tokenizer(), {.max_sequences = 8, .step_token_budget = 256}));
    ServedModel model{.name = "smollm2-135m", .engine = std::move(engine), .precision = to_string(precision)};
    model.render_chat = [loaded](const std::vector<ChatMessage>& messages, const boost::json::array& tools) {
      return loaded.render(messages, tools);
    };
    ASSIGN_OR_RETURN(server, ApiServer::start({}, std::move(model)));
    server->set_ready();
    return {};
  }
};

class RealModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (std::filesystem::exists(model_path())) real_ = std::make_unique<RealServer>();
  }
  static void TearDownTestSuite() { real_.reset(); }
  void SetUp() override {
    if (!real_) GTEST_SKIP() << model_path() << " is absent; run: assay pull smollm2-135m";
    ASSERT_TRUE(real_->server) << real_->problem;
  }

  static std::string request(const std::string& path, const std::string& body) {
    return testing::Served::post_text(path, body);
  }
  static RawResponse ask(const std::string& path, const std::string& body) {
    RawSocket socket(real_->server->port());
    socket.send(request(path, body));
    return socket.read_response(120);
  }
  static std::string chat_body(const std::string& question, int max_tokens, const std::string& more = "") {
    return fmt::format(R"({{"model":"smollm2-135m","temperature":0,"max_tokens":{},)"
                       R"("messages":[{{"role":"user","content":"{}"}}]{}}})",
                       max_tokens, question, more);
  }
  static RawResponse chat(const std::string& question, int max_tokens, const std::string& more = "") {
    return ask("/v1/chat/completions", chat_body(question, max_tokens, more));
  }
  static std::string answer(const RawResponse& response) {
    EXPECT_EQ(response.status, 200) << response.body;
    return text_at(json_of(response), "/choices/0/message/content");
  }

  static std::unique_ptr<RealServer> real_;
};

std::unique_ptr<RealServer> RealModel::real_;

const std::vector<std::string> kQuestions = {
    "What is the capital of France?", "Name three colours.",
    "What is two plus two?",          "Who wrote Hamlet?",
    "Say hello in Spanish.",          "What do cows drink?",
    "How many days are in a week?",   "Is the sun a star or a planet?"};

TEST_F(RealModel, continues_a_fact) {
  const auto body = json_of(
      ask("/v1/completions",
          R"({"model":"smollm2-135m","prompt":"The capital of France is","max_tokens":2,"temperature":0})"));
  EXPECT_NE(text_at(body, "/choices/0/text").find("Paris"), std::string::npos);
}

// SmolLM2's template written out by hand: with a first message that is no system message, it adds one of its
// own.
TEST_F(RealModel, chat_is_the_completion_of_the_conversation_spelled_out) {
  const std::string spelled =
      "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
      "<|im_start|>user\nWho wrote Hamlet?<|im_end|>\n<|im_start|>assistant\n";
  const auto loaded = LoadedModel::load_tokenizer(model_path());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message();
  const auto ids = loaded->tokenizer()->encode(spelled, {.parse_special = true});
  const auto completion =
      json_of(ask("/v1/completions",
                  fmt::format(R"({{"model":"smollm2-135m","prompt":[{}],"max_tokens":16,"temperature":0}})",
                              fmt::join(ids, ","))));
  const RawResponse response = chat("Who wrote Hamlet?", 16);
  EXPECT_EQ(answer(response), text_at(completion, "/choices/0/text"));
  EXPECT_EQ(text_at(json_of(response), "/usage/prompt_tokens"), std::to_string(ids.size()));
  EXPECT_GT(answer(response).size(), 5U);
}

TEST_F(RealModel, stream_and_whole_answer_are_the_same_text) {
  for (const std::string& question : {kQuestions[0], kQuestions[4]}) {
    const std::string whole = answer(chat(question, 24));
    std::string streamed;
    std::string usage;
    for (const std::string& event :
         events_of(chat(question, 24, R"(,"stream":true,"stream_options":{"include_usage":true})").body)) {
      if (event == "[DONE]") break;
      const auto chunk = boost::json::parse(event);
      const std::string piece = text_at(chunk, "/choices/0/delta/content");
      if (piece != "(absent)") streamed += piece;
      if (text_at(chunk, "/choices") == "[]") usage = text_at(chunk, "/usage/completion_tokens");
    }
    EXPECT_EQ(streamed, whole);
    EXPECT_FALSE(usage.empty());
  }
}

TEST_F(RealModel, concurrent_answers_equal_the_solo_ones) {
  std::vector<std::string> solo;
  for (const std::string& question : kQuestions) solo.push_back(answer(chat(question, 16)));
  std::vector<std::future<std::string>> together;
  for (const std::string& question : kQuestions) {
    together.push_back(std::async(std::launch::async, [question] { return answer(chat(question, 16)); }));
  }
  for (size_t i = 0; i < together.size(); ++i) EXPECT_EQ(together[i].get(), solo[i]) << kQuestions[i];
}

TEST_F(RealModel, repeated_prefix_is_reported_as_cached_and_changes_nothing) {
  const std::string question =
      "Here is a list of words: apple, river, stone, cloud, window, garden, letter, market, silver, winter. "
      "Repeat the third word of that list.";
  const RawResponse first = chat(question, 12);
  const RawResponse second = chat(question, 12);
  EXPECT_EQ(answer(first), answer(second));
  const auto body = json_of(second);
  const int cached = std::stoi(text_at(body, "/usage/prompt_tokens_details/cached_tokens"));
  const int prompt = std::stoi(text_at(body, "/usage/prompt_tokens"));
  EXPECT_GE(cached, 32) << second.body;
  EXPECT_LT(cached, prompt);
}

TEST_F(RealModel, seeded_sampling_repeats_and_choices_differ) {
  const std::string body =
      R"({"model":"smollm2-135m","prompt":"Once upon a time","max_tokens":12,"temperature":1.5,"seed":7,"n":3})";
  const auto first = json_of(ask("/v1/completions", body));
  const auto second = json_of(ask("/v1/completions", body));
  for (int i = 0; i < 3; ++i) {
    const std::string pointer = fmt::format("/choices/{}/text", i);
    EXPECT_EQ(text_at(first, pointer), text_at(second, pointer));
  }
  EXPECT_NE(text_at(first, "/choices/0/text"), text_at(first, "/choices/1/text"));
}

TEST_F(RealModel, stop_string_ends_the_answer_before_it) {
  const std::string whole = answer(chat("Count from one to ten.", 40));
  ASSERT_GT(whole.size(), 8U);
  const std::string stop = whole.substr(whole.size() / 2, 3);
  const size_t at = whole.find(stop);
  const auto body = boost::json::serialize(boost::json::value(boost::json::string(stop)));
  const RawResponse stopped = chat("Count from one to ten.", 40, ",\"stop\":" + body);
  EXPECT_EQ(answer(stopped), whole.substr(0, at));
  EXPECT_EQ(text_at(json_of(stopped), "/choices/0/finish_reason"), "stop");
}

TEST_F(RealModel, log_probabilities_are_of_the_greedy_choice) {
  const auto body = json_of(chat("Say hello.", 6, R"(,"logprobs":true,"top_logprobs":3)"));
  const auto& content = body.at("choices").at(0).at("logprobs").at("content").as_array();
  ASSERT_GE(content.size(), 1U);
  for (const auto& entry : content) {
    // At temperature 0 the chosen token is the best one.
    EXPECT_EQ(text_at(entry, "/token"), text_at(entry, "/top_logprobs/0/token"));
    EXPECT_LE(entry.at("logprob").to_number<double>(), 0);
    EXPECT_GE(entry.at("top_logprobs").at(0).at("logprob").to_number<double>(),
              entry.at("top_logprobs").at(1).at("logprob").to_number<double>());
  }
}

TEST_F(RealModel, disconnect_frees_the_engine) {
  {
    RawSocket socket(real_->server->port());
    socket.send(
        request("/v1/chat/completions", chat_body("Tell a very long story.", 900, R"(,"stream":true)")));
    ASSERT_TRUE(socket.wait_for("data:", 60));
  }
  EXPECT_TRUE(testing::eventually([&] {
    RawSocket socket(real_->server->port());
    socket.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    return socket.read_response().body.find("assay_running_requests 0\n") != std::string::npos;
  }));
}

}  // namespace
}  // namespace assay
