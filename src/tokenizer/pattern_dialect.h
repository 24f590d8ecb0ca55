// Restates a pattern of tokenizer.json (Oniguruma, or the `regex` crate of Rust) in PCRE2's dialect. They
// differ in white space (\s is Unicode's White_Space there; PCRE2 adds U+180E), in \p{Han} and other scripts
// (Script there; Script_Extensions in PCRE2) and in sets inside sets. Thread safety: pure. Failure:
// kUnsupported for set operations, which PCRE2 cannot express.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace assay::tokenizer_internal {

Result<std::string> to_pcre2_dialect(std::string_view pattern);

}  // namespace assay::tokenizer_internal
