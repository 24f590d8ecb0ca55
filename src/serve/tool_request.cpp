#include "serve/tool_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>

namespace assay {
namespace {

namespace json = boost::json;

constexpr size_t kMaxNameBytes = 64;

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// {"type": "function", "function": {...}}: the inner object, or null with a failure in `outer`.
const json::object* function_of(FieldReader& outer) {
  const auto type = outer.text("type");
  if (!outer.failed() && (!type || *type != "function"))
    outer.fail("type", fmt::format("expected \"function\", found \"{}\"", type.value_or("").substr(0, 40)));
  const json::object* function = outer.object("function");
  if (function == nullptr && !outer.failed())
    outer.fail("function", "is required", "missing_required_parameter");
  return function;
}

void read_function(FieldReader& function, ToolFunction& out) {
  const auto name = function.text("name");
  if (!name) {
    function.fail("name", "is required", "missing_required_parameter");
  } else if (!is_name(*name)) {
    function.fail("name", fmt::format("expected 1 to {} of A-Za-z0-9_-, found \"{}\"", kMaxNameBytes,
                                      name->substr(0, 80)));
  }
  out.name = name.value_or("");
  function.text("description");
  if (const json::object* parameters = function.object("parameters")) out.parameters = *parameters;
  out.strict = function.boolean("strict").value_or(false);
  function.finish();
}

void read_list(FieldReader& fields, const json::array& list, ToolRequest& tools) {
  if (list.size() > ToolRequest::kMaxTools)
    return fields.fail(
        "tools", fmt::format("expected at most {} tools, found {}", ToolRequest::kMaxTools, list.size()));
  for (size_t i = 0; i < list.size() && !fields.failed(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    const json::object* object = list[i].if_object();
    if (object == nullptr) return fields.fail_type(path, "an object", list[i]);
    FieldReader outer(*object, path);
    if (const json::object* function = function_of(outer)) {
      FieldReader inner(*function, outer.full_name("function"));
      ToolFunction& own = tools.functions.emplace_back();
      read_function(inner, own);
      if (std::ranges::count(tools.functions, own.name, &ToolFunction::name) > 1)
        inner.fail("name", fmt::format("two functions are called \"{}\"", own.name));
      if (inner.failed()) outer.fail_with(inner.error());
    }
    outer.finish();
    if (outer.failed()) fields.fail_with(outer.error());
  }
  tools.listed = list;
}

void read_named_choice(FieldReader& fields, const json::object& choice, ToolRequest& tools) {
  FieldReader outer(choice, "tool_choice");
  if (const json::object* function = function_of(outer)) {
    FieldReader inner(*function, outer.full_name("function"));
    const auto name = inner.text("name");
    if (!name) inner.fail("name", "is required", "missing_required_parameter");
    inner.finish();
    const auto known = std::ranges::find(tools.functions, name.value_or(""), &ToolFunction::name);
    if (known == tools.functions.end()) {
      inner.fail("name", fmt::format("\"{}\" is not among the tools", name.value_or("").substr(0, 80)));
    } else {
      tools.choice = ToolRequest::Choice::kNamed;
      tools.named = static_cast<size_t>(known - tools.functions.begin());
    }
    if (inner.failed()) outer.fail_with(inner.error());
  }
  outer.finish();
  if (outer.failed()) fields.fail_with(outer.error());
}

void read_choice(FieldReader& fields, ToolRequest& tools) {
  using Choice = ToolRequest::Choice;
  tools.choice = tools.functions.empty() ? Choice::kNone : Choice::kAuto;
  const json::value* choice = fields.any("tool_choice");
  if (choice == nullptr) return;
  if (*choice == "none") {
    tools.choice = Choice::kNone;
    return;
  }
  if (tools.functions.empty()) return fields.fail("tool_choice", "is allowed only with tools");
  if (const json::object* object = choice->if_object()) return read_named_choice(fields, *object, tools);
  if (*choice == "required") {
    tools.choice = Choice::kRequired;
  } else if (*choice != "auto") {
    fields.fail_type("tool_choice", "none, auto, required or an object that names a function", *choice);
  }
}

}  // namespace

ToolRequest read_tools(FieldReader& fields) {
  ToolRequest tools;
  if (const json::array* list = fields.array("tools")) read_list(fields, *list, tools);
  read_choice(fields, tools);
  tools.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  return tools;
}

json::array read_tool_calls(FieldReader& message) {
  json::array calls;
  const json::array* list = message.array("tool_calls");
  if (list == nullptr) return calls;
  if (list->size() > ToolRequest::kMaxTools)
    message.fail("tool_calls",
                 fmt::format("expected at most {} calls, found {}", ToolRequest::kMaxTools, list->size()));
  for (size_t i = 0; i < list->size() && !message.failed(); ++i) {
    const std::string path = fmt::format("tool_calls[{}]", i);
    const json::object* object = (*list)[i].if_object();
    if (object == nullptr) {
      message.fail_type(path, "an object", (*list)[i]);
      break;
    }
    FieldReader outer(*object, message.full_name(path));
    const auto id = outer.text("id");
    outer.integer("index", 0, 1 << 20);  // clients send back what a stream gave them
    if (const json::object* function = function_of(outer)) {
      FieldReader inner(*function, outer.full_name("function"));
      const auto name = inner.text("name"), text = inner.text("arguments");
      if (!name) inner.fail("name", "is required", "missing_required_parameter");
      json::error_code error;
      json::value arguments = json::parse(text.value_or("{}").empty() ? "{}" : text.value_or("{}"), error);
      if (error) inner.fail("arguments", "expected JSON in a string: " + error.message());
      inner.finish();
      if (inner.failed()) outer.fail_with(inner.error());
      calls.push_back(json::object{
          {"id", id.value_or("")},
          {"type", "function"},
          {"function", json::object{{"name", name.value_or("")}, {"arguments", std::move(arguments)}}}});
    }
    outer.finish();
    if (outer.failed()) message.fail_with(outer.error());
  }
  return calls;
}

}  // namespace assay
