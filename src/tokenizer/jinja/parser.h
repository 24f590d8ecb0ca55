// Parses a template into its syntax tree. Internal to the template engine.
// Failure: Failure with kCorrupt (syntax), kUnsupported (include, extends, unknown filters) or
// kResourceExhausted (too large, nested too deep), and the line.
#pragma once

#include <string_view>

#include "tokenizer/jinja/ast.h"

namespace assay::tokenizer_internal::jinja {

Template parse_template(std::string_view source);

}  // namespace assay::tokenizer_internal::jinja
