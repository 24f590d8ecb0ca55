// UTF-8 for JSON: whether bytes are valid, and a valid text made of any bytes. Pure. Strict as Unicode 15
// table 3-7.
#pragma once

#include <string>
#include <string_view>

namespace assay {

bool is_valid_utf8(std::string_view bytes);
// Each invalid byte sequence (maximal subpart) becomes U+FFFD.
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace assay
