// Base64 (RFC 4648, section 4: with padding). Cost: linear.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay {

std::string encode_base64(std::string_view bytes);
// nullopt: not base64, as the RFC has it (no white space, padding complete, unused bits zero).
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace assay
