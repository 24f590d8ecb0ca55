// An ApiServer over a fake engine, and short ways to ask it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "http/raw_socket.h"
#include "http/sse.h"
#include "serve/api_server.h"
#include "serve/fake_engine.h"

namespace assay::testing {

inline bool eventually(const std::function<bool()>& condition, double seconds = 10) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

// "<role>content</role>..." and an opening for the answer. Refuses a conversation that starts with the
// assistant.
inline Result<std::string> toy_template(const std::vector<ChatMessage>& messages,
                                        const boost::json::array& tools) {
  if (messages.front().role == "assistant") {
    return fail(ErrorCode::kInvalidArgument, "chat template", "the conversation must start with the user");
  }
  std::string text;
  if (!tools.empty()) text += fmt::format("<tools>{}\n", boost::json::serialize(tools));
  for (const ChatMessage& message : messages) text += fmt::format("<{}>{}\n", message.role, message.content);
  return text + "<assistant>";
}

struct Served {
  std::shared_ptr<FakeEngine> engine;
  std::unique_ptr<ApiServer> server;

  explicit Served(FakeEngine::Options options = {}, ServeConfig config = {}, bool ready = true,
                  bool can_chat = true, ToolFormat tools = ToolFormat::kNone) {
    engine = std::make_shared<FakeEngine>(std::move(options));
    ServedModel model{
        .name = "org/toy", .aliases = {"default"}, .engine = engine, .precision = "weights int8:32 (2)"};
    model.n_embedding = 4;
    model.tool_format = tools;
    if (can_chat) {
      model.render_chat = toy_template;
    } else {
      model.no_chat_reason = "the checkpoint has no chat template";
    }
    auto started = ApiServer::start(std::move(config), std::move(model));
    if (!started) ADD_FAILURE() << started.error().message();
    server = std::move(*started);
    if (ready) server->set_ready();
  }

  RawResponse ask(const std::string& bytes) const {
    RawSocket socket(server->port());
    socket.send(bytes);
    return socket.read_response();
  }
  RawResponse get(const std::string& path) const {
    return ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  static std::string post_text(const std::string& path, const std::string& body,
                               const std::string& more = "") {
    return fmt::format(
        "POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}",
        path, more, body.size(), body);
  }
  RawResponse post(const std::string& path, const std::string& body) const {
    return ask(post_text(path, body));
  }
  RawResponse chat(const std::string& more = "") const {
    return post("/v1/chat/completions", chat_body(more));
  }
  RawResponse complete(const std::string& more = "") const {
    return post("/v1/completions", completion_body(more));
  }

  static std::string chat_body(const std::string& more = "") {
    return R"({"model":"org/toy","messages":[{"role":"user","content":"hi"}])" +
           (more.empty() ? "" : "," + more) + "}";
  }
  static std::string completion_body(const std::string& more = "") {
    return R"({"model":"org/toy","prompt":"hi")" + (more.empty() ? "" : "," + more) + "}";
  }
};

inline boost::json::value json_of(const RawResponse& response) {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse(response.body, error);
  if (error) ADD_FAILURE() << "not JSON: " << response.body;
  return value;
}

inline std::string text_at(const boost::json::value& value, const std::string& pointer) {
  boost::json::error_code error;
  const auto* found = value.find_pointer(pointer, error);
  if (found == nullptr) return "(absent)";
  return found->is_string() ? std::string(found->get_string()) : boost::json::serialize(*found);
}

// The data of every event of a stream.
inline std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> events;
  SseParser parser;
  const auto fed = parser.feed(body, [&](const SseEvent& event) { events.push_back(event.data); });
  if (!fed) ADD_FAILURE() << fed.error().message();
  return events;
}

}  // namespace assay::testing
