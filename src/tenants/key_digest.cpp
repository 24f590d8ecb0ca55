#include "tenants/key_digest.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace assay {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

KeyDigest digest_of_key(std::string_view key) {
  KeyDigest digest{};
  // NOLINTNEXTLINE: bytes are bytes.
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

Result<KeyDigest> parse_key_digest(std::string_view hex) {
  KeyDigest digest{};
  bool good = hex.size() == 2 * digest.size();
  for (size_t i = 0; good && i < digest.size(); ++i) {
    const int high = hex_value(hex[2 * i]), low = hex_value(hex[2 * i + 1]);
    good = high >= 0 && low >= 0;
    digest.at(i) = static_cast<unsigned char>(high * 16 + low);
  }
  if (!good)
    return fail(ErrorCode::kInvalidArgument, "", "expected the SHA-256 of a key as 64 hexadecimal digits");
  return digest;
}

bool same_digest(const KeyDigest& a, const KeyDigest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace assay
