// Finds, for each scope of a template, the names that it assigns before it reads them. Jinja compiles such a
// name to a variable of the scope, which is undefined until then: neither the scopes around nor the context
// show through, not even for macros and loops inside that run before the assignment. Internal to the template
// engine. Source: the rules of jinja2/idtracking.py, seen from outside. Cost: linear in the tree times its
// depth.
#pragma once

#include "tokenizer/jinja/ast.h"

namespace assay::tokenizer_internal::jinja {

// Fills every `hidden` of the tree.
void analyze_scopes(Template& tree);

}  // namespace assay::tokenizer_internal::jinja
