// Number and string literals as Jinja reads them. Internal to the template engine.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

struct NumberLiteral {
  size_t size = 0;  // bytes it takes
  bool is_float = false;
  Integer integer = 0;
  double real = 0;
};

// The number at the start of `text`, which begins with a digit. After a dot it is never a float (`x.0.1`).
NumberLiteral read_number_literal(std::string_view text, bool after_dot, int line);

// Resolves Python's escapes in what stood between the quotes.
std::string unescape_string(std::string_view text, int line);

}  // namespace assay::tokenizer_internal::jinja
