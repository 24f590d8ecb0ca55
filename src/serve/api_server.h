// The OpenAI-compatible server: routes over http, sequences to the engine, health and metrics.
//
// GET /v1/models, /v1/models/{id}; POST /v1/chat/completions, /v1/completions (streaming or not); GET
// /health, /health/live, /health/ready, /metrics, /version. Every failure is an OpenAI error object with its
// status; none stops the server.
//
// Ownership: shares the engine; it must not be destroyed by anyone while the server runs. Thread safety: any
// thread. Failure: start() reports a taken port or bad address.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/loaded_model.h"
#include "http/server.h"
#include "serve/openai_request.h"
#include "serve/tool_format.h"
#include "telemetry/metrics.h"

namespace assay {

// What is served under a name.
struct ServedModel {
  std::string name;                  // as /v1/models lists it
  std::vector<std::string> aliases;  // further names that requests may use
  std::shared_ptr<Engine> engine;
  std::string precision;  // effective, in words
  // Messages to a prompt, and a prompt to ids. No function: the model cannot chat, for the reason given.
  std::function<Result<std::string>(const std::vector<ChatMessage>&, const boost::json::array& tools)>
      render_chat;
  std::string no_chat_reason;
  ToolFormat tool_format = ToolFormat::kNone;  // how the chat template has tool calls written
};

struct ServeConfig {
  ServerConfig http;
  ApiLimits limits;  // n_vocab is filled from the engine
};

class ApiServer {
 public:
  // Listens at once; answers generation requests with 503 until set_ready().
  static Result<std::unique_ptr<ApiServer>> start(ServeConfig config, ServedModel model);
  virtual ~ApiServer() = default;  // cuts what runs

  virtual void set_ready() = 0;
  virtual uint16_t port() const = 0;
  virtual std::string address() const = 0;  // "127.0.0.1:8080"
  virtual MetricRegistry& metrics() = 0;

  // No new requests (503 on connections that are open); running ones may end within the time, then they are
  // cut with an error. True when nothing had to be cut. Blocks.
  virtual bool drain(double timeout_seconds) = 0;
};

}  // namespace assay
