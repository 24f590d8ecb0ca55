// Python's ways to put values into texts: "%s" % value, "{}".format(value), and HTML escaping.
// Internal to the template engine.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/value.h"

namespace assay::tokenizer_internal::jinja {

std::string escape_html(std::string_view text);  // & < > ' "
// `values` is a tuple, a dict (for %(name)s) or one value.
Value format_percent(Heap& heap, const TextBody& format, const Value& values);
Value format_braces(Heap& heap, const TextBody& format, const Arguments& arguments);

}  // namespace assay::tokenizer_internal::jinja
