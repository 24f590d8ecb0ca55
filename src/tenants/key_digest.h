// SHA-256 of an API key: what is kept of it, and what is compared. Keys have high entropy, so a plain digest
// needs no salt. Source: FIPS 180-4 (by OpenSSL). Cost: linear in the key.
#pragma once

#include <array>
#include <string_view>

#include "base/error.h"

namespace assay {

using KeyDigest = std::array<unsigned char, 32>;

KeyDigest digest_of_key(std::string_view key);
// 64 hexadecimal digits; kInvalidArgument for anything else. The message does not repeat the text.
Result<KeyDigest> parse_key_digest(std::string_view hex);
// Takes the same time whatever the digests.
bool same_digest(const KeyDigest& a, const KeyDigest& b);

}  // namespace assay
