// What a server serves, and within which limits. Plain values; the engine is shared.
#pragma once

#include <boost/json/array.hpp>
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
#include "serve/watch_config.h"
#include "tenants/tenant_policy.h"

namespace assay {

// What is served under a name.
struct ServedModel {
  std::string name;                  // as /v1/models lists it
  std::vector<std::string> aliases;  // further names that requests may use
  std::shared_ptr<Engine> engine;
  std::string precision;  // effective, in words
  int n_embedding = 0;    // length of a hidden state
  // Messages to a prompt. No function: the model cannot chat, for the reason given.
  std::function<Result<std::string>(const std::vector<ChatMessage>&, const boost::json::array& tools)>
      render_chat;
  std::string no_chat_reason;
  std::string chat_template;                   // its source, for clients that render by themselves
  ToolFormat tool_format = ToolFormat::kNone;  // how the chat template has tool calls written
};

struct ServeConfig {
  ServerConfig http;
  ApiLimits limits;     // n_vocab is filled from the engine
  TenantTable tenants;  // empty: no keys are asked for
  WatchConfig watch;
};

}  // namespace assay
