// Macros and the callers of call blocks. Internal to the template engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/interpreter.h"

namespace assay::tokenizer_internal::jinja {

class MacroObject : public Callable {
 public:
  MacroObject(const MacroDefinition& definition, Scope* closure)
      : definition_(definition), closure_(closure) {}

  std::string_view type_name() const override { return "Macro"; }
  std::string describe() const override;
  std::optional<Value> attribute(Heap& heap, std::string_view name) override;
  Value call(Interpreter& interpreter, Arguments arguments) override;

 private:
  void bind_parameters(Interpreter& interpreter, Arguments& arguments, Scope& scope) const;
  void bind_special(Interpreter& interpreter, Arguments& arguments, Scope& scope) const;

  const MacroDefinition& definition_;
  Scope* const closure_;
};

}  // namespace assay::tokenizer_internal::jinja
