#include "serve/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "serve/tool_request.h"

namespace assay {
namespace {

namespace json = boost::json;

// "text" or [{"type": "text", "text": "..."}, ...].
std::optional<std::string> read_content(FieldReader& message) {
  const json::value* content = message.any("content");
  if (content == nullptr) {
    message.fail("content", "is required: a string or an array of text parts", "missing_required_parameter");
    return std::nullopt;
  }
  if (const json::string* text = content->if_string()) return std::string(*text);
  const json::array* parts = content->if_array();
  if (parts == nullptr || parts->empty()) {
    message.fail_type("content", "a string or a non-empty array of text parts", *content);
    return std::nullopt;
  }
  std::string joined;
  for (size_t i = 0; i < parts->size() && !message.failed(); ++i) {
    const std::string name = fmt::format("content[{}]", i);
    const json::object* part = (*parts)[i].if_object();
    if (part == nullptr) {
      message.fail_type(name, "an object", (*parts)[i]);
      break;
    }
    FieldReader inner(*part, message.full_name(name));
    const auto type = inner.text("type");
    if (!inner.failed() && (!type || *type != "text")) {
      inner.fail(
          "type",
          fmt::format("only \"text\" parts are supported, found \"{}\"", type.value_or("").substr(0, 40)),
          "unsupported_content");
    }
    const auto text = inner.text("text");
    if (!text) inner.fail("text", "is required", "missing_required_parameter");
    inner.finish();
    if (inner.failed()) message.fail_with(inner.error());
    joined += text.value_or("");
  }
  return joined;
}

void read_message(FieldReader& message, ChatMessage& out) {
  const auto role = message.text("role");
  if (!role) return message.fail("role", "is required", "missing_required_parameter");
  constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant", "tool"};
  if (std::ranges::find(kRoles, *role) == kRoles.end()) {
    return message.fail("role",
                        fmt::format("expected system, developer, user, assistant or tool, found \"{}\"",
                                    role->substr(0, 40)));
  }
  out.role = *role == "developer" ? "system" : *role;
  if (*role == "assistant") out.tool_calls = read_tool_calls(message);
  // An assistant that calls need not say anything.
  if (out.tool_calls.empty() || message.any("content") != nullptr)
    out.content = read_content(message).value_or("");
  if (*role == "tool") {
    out.tool_call_id = message.text("tool_call_id").value_or("");
    if (out.tool_call_id.empty()) message.fail("tool_call_id", "is required", "missing_required_parameter");
  }
  message.refuse("type", "\"text\"", "is not supported");  // lm-eval marks every message so
  const auto name = message.text("name");                  // chat templates use it for tools alone
  if (*role == "tool") out.name = name.value_or("");
  for (const char* field : {"refusal", "audio", "function_call"})
    message.refuse(field, "null", "is not supported");
  message.refuse("annotations", "[]", "is not supported");
  if (*role != "assistant") message.refuse("tool_calls", "[]", "is allowed only in an assistant's message");
  message.finish();
}

}  // namespace

std::vector<ChatMessage> read_messages(FieldReader& fields, int max_messages) {
  std::vector<ChatMessage> messages;
  const json::array* list = fields.array("messages");
  if (list == nullptr) {
    fields.fail("messages", "is required: an array of messages", "missing_required_parameter");
    return messages;
  }
  if (list->empty() || list->size() > static_cast<size_t>(max_messages)) {
    fields.fail("messages", fmt::format("expected 1 to {} messages, found {}", max_messages, list->size()));
    return messages;
  }
  for (size_t i = 0; i < list->size() && !fields.failed(); ++i) {
    const std::string name = fmt::format("messages[{}]", i);
    const json::object* object = (*list)[i].if_object();
    if (object == nullptr) {
      fields.fail_type(name, "an object", (*list)[i]);
      return messages;
    }
    FieldReader message(*object, name);
    read_message(message, messages.emplace_back());
    if (message.failed()) fields.fail_with(message.error());
  }
  return messages;
}

}  // namespace assay
