// Matches the arguments of a call with the parameters of a built-in, as Python does. Internal to the template
// engine.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

class BoundArguments {
 public:
  // The first `required` parameters must be given. Borrows the arguments.
  BoundArguments(std::string_view function, const Arguments& arguments,
                 std::initializer_list<std::string_view> parameters, size_t required);

  const Value* find(size_t index) const { return values_[index]; }  // null: not given
  const Value& at(size_t index) const { return *values_[index]; }   // for required ones

  std::string_view text(size_t index) const;  // required, and a string
  Integer integer(size_t index) const;
  Integer integer_or(size_t index, Integer fallback) const;
  bool truth_or(size_t index, bool fallback) const;
  // Null when not given or none.
  const Value* find_some(size_t index) const;

 private:
  std::string_view function_;
  std::vector<std::string_view> parameters_;
  std::vector<const Value*> values_;
};

}  // namespace assay::tokenizer_internal::jinja
