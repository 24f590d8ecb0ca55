// The filters and tests of Jinja, by name. Internal to the template engine.
// A filter takes the value before `|`, a test the value before `is`. Unknown arguments and wrong types are
// Failures.
#pragma once

#include <string_view>

#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

using FilterFunction = Value (*)(Interpreter& interpreter, const Value& input, const Arguments& arguments);
using TestFunction = bool (*)(Interpreter& interpreter, const Value& input, const Arguments& arguments);

FilterFunction find_filter(std::string_view name);  // null: there is none
TestFunction find_test(std::string_view name);

}  // namespace assay::tokenizer_internal::jinja
