// tools, tool_choice and parallel_tool_calls of a chat request, and the parts of messages that belong to
// them. Source: OpenAI API reference (function calling). Pure. Failure: ApiError, recorded in the reader.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "serve/field_reader.h"

namespace assay {

struct ToolFunction {
  std::string name;               // 1 to 64 of A-Za-z0-9_-
  boost::json::value parameters;  // a JSON schema; null: any object
  bool strict = false;            // the arguments are kept to the schema even where the model is free to call
};

struct ToolRequest {
  static constexpr size_t kMaxTools = 128;

  enum class Choice { kNone, kAuto, kRequired, kNamed, kCount };
  Choice choice = Choice::kNone;
  std::vector<ToolFunction> functions;
  size_t named = 0;           // kNamed: index into functions
  bool parallel = true;       // more than one call in an answer
  boost::json::array listed;  // as sent, for the chat template

  bool offered() const { return choice != Choice::kNone; }
  bool forced() const { return choice == Choice::kRequired || choice == Choice::kNamed; }
};

ToolRequest read_tools(FieldReader& fields);

// tool_calls of an assistant's message, with arguments as JSON values, as chat templates expect them; empty:
// none.
boost::json::array read_tool_calls(FieldReader& message);

}  // namespace assay
