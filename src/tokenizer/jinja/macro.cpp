#include "tokenizer/jinja/macro.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace assay::tokenizer_internal::jinja {
namespace {

std::optional<Value> take_named(Arguments& arguments, std::string_view name) {
  const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                  [&](const auto& argument) { return argument.first == name; });
  if (found == arguments.named.end()) return std::nullopt;
  Value value = std::move(found->second);
  arguments.named.erase(found);
  return value;
}

}  // namespace

std::string MacroObject::describe() const {
  return definition_.name.empty() ? "<Macro anonymous>" : fmt::format("<Macro '{}'>", definition_.name);
}

std::optional<Value> MacroObject::attribute(Heap& heap, std::string_view name) {
  if (name == "name") return definition_.name.empty() ? Value(None{}) : heap.text(definition_.name);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const Parameter& parameter : definition_.parameters) names.push_back(heap.text(parameter.name));
    return heap.tuple(std::move(names));
  }
  if (name == "caller") return Value(definition_.uses_caller);
  if (name == "catch_kwargs") return Value(definition_.uses_kwargs);
  if (name == "catch_varargs") return Value(definition_.uses_varargs);
  return std::nullopt;
}

// Defaults are evaluated at each call, inside the macro, after the parameters before them.
void MacroObject::bind_parameters(Interpreter& interpreter, Arguments& arguments, Scope& scope) const {
  const auto& parameters = definition_.parameters;
  std::vector<std::optional<Value>> values(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    values[i] = i < arguments.positional.size() ? std::optional<Value>(arguments.positional[i])
                                                : take_named(arguments, parameters[i].name);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (values[i]) {
      scope.set(parameters[i].name, *values[i]);
    } else if (parameters[i].fallback) {
      scope.set(parameters[i].name, interpreter.evaluate(*parameters[i].fallback));
    } else {
      scope.set(parameters[i].name,
                undefined_because(fmt::format("parameter '{}' was not provided", parameters[i].name)));
    }
  }
}

void MacroObject::bind_special(Interpreter& interpreter, Arguments& arguments, Scope& scope) const {
  Heap& heap = interpreter.heap();
  if (definition_.uses_caller) {
    auto caller = take_named(arguments, "caller");
    scope.set("caller", caller ? *caller : undefined_because("no caller defined"));
  }
  if (definition_.uses_kwargs) {
    Dict* kwargs = heap.make<Dict>();
    heap.reserve_values(2 * arguments.named.size());
    for (auto& [name, value] : arguments.named) kwargs->set(heap.text(name), std::move(value));
    scope.set("kwargs", kwargs);
  } else if (!arguments.named.empty()) {
    fail_render("macro '{}' takes no keyword argument '{}'", definition_.name, arguments.named.front().first);
  }
  const size_t taken = std::min(definition_.parameters.size(), arguments.positional.size());
  if (definition_.uses_varargs) {
    const auto rest = arguments.positional.begin() + static_cast<std::ptrdiff_t>(taken);
    scope.set("varargs", heap.tuple({rest, arguments.positional.end()}));
  } else if (arguments.positional.size() > taken) {
    fail_render("macro '{}' takes not more than {} arguments", definition_.name,
                definition_.parameters.size());
  }
}

Value MacroObject::call(Interpreter& interpreter, Arguments arguments) {
  Scope* scope = interpreter.heap().make<Scope>(closure_);
  interpreter.heap().reserve_values(definition_.parameters.size());
  Scope* const saved = std::exchange(interpreter.scope_, scope);
  bind_parameters(interpreter, arguments, *scope);
  bind_special(interpreter, arguments, *scope);
  std::string text = interpreter.render_macro_body(definition_, scope);
  interpreter.scope_ = saved;
  return interpreter.heap().text(std::move(text));
}

}  // namespace assay::tokenizer_internal::jinja
