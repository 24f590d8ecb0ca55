// The alphabet of byte-level BPE: every byte is spelled as one printable character. Printable Latin-1 bytes
// spell themselves; the other 68 are moved to U+0100 and up, in order. Source: GPT-2's encoder
// (bytes_to_unicode). Thread safety: pure functions over constant tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::tokenizer_internal {

// The character, in UTF-8, that spells `byte`.
std::string_view spell_byte(uint8_t byte);

// Appends the spelling of each byte.
void spell_bytes(std::string_view bytes, std::string& out);

// The bytes that a spelling stands for; nothing when it holds a character outside the alphabet.
std::optional<std::string> unspell_bytes(std::string_view spelling);

}  // namespace assay::tokenizer_internal
