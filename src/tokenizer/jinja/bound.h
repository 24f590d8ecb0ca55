// Functions and methods of the language as values. Internal to the template engine.
#pragma once

#include <string_view>
#include <utility>

#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

using MethodFunction = Value (*)(Interpreter& interpreter, Value& self, const Arguments& arguments);

// A function together with the value it belongs to (undefined for a global function).
struct BoundMethod : Callable {
  BoundMethod(std::string_view method_name, Value value, MethodFunction body)
      : name(method_name), self(std::move(value)), function(body) {}
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  std::string describe() const override { return "<built-in method " + std::string(name) + ">"; }
  Value call(Interpreter& interpreter, Arguments arguments) override {
    return function(interpreter, self, arguments);
  }

  const std::string_view name;  // a literal
  Value self;
  const MethodFunction function;
};

inline Value bind_method(Heap& heap, std::string_view name, Value self, MethodFunction function) {
  return heap.make<BoundMethod>(name, std::move(self), function);
}

}  // namespace assay::tokenizer_internal::jinja
