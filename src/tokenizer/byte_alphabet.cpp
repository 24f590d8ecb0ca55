#include "tokenizer/byte_alphabet.h"

#include <array>

#include "tokenizer/utf8.h"

namespace assay::tokenizer_internal {
namespace {

constexpr int kMovedBytes = 68;

bool spells_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::string, 256> spelling;
  std::array<int16_t, 256 + kMovedBytes> byte_of{};  // by code point; -1 outside the alphabet

  Alphabet() {
    byte_of.fill(-1);
    char32_t moved = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t code = spells_itself(byte) ? static_cast<char32_t>(byte) : moved++;
      byte_of[code] = static_cast<int16_t>(byte);
      append_utf8(code, spelling[byte]);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string_view spell_byte(uint8_t byte) {
  return alphabet().spelling[byte];
}

void spell_bytes(std::string_view bytes, std::string& out) {
  const Alphabet& letters = alphabet();
  for (const char byte : bytes) out += letters.spelling[static_cast<uint8_t>(byte)];
}

std::optional<std::string> unspell_bytes(std::string_view spelling) {
  const Alphabet& letters = alphabet();
  std::string bytes;
  for (size_t at = 0; at < spelling.size();) {
    const Utf8Char character = decode_utf8(spelling, at);
    if (character.status != Utf8Status::kValid || character.code >= letters.byte_of.size())
      return std::nullopt;
    const int16_t byte = letters.byte_of[character.code];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    at += character.length;
  }
  return bytes;
}

}  // namespace assay::tokenizer_internal
