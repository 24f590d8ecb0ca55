#include "tokenizer/utf8.h"

#include <cstring>

namespace assay::tokenizer_internal {
namespace {

// What the lead byte announces: the length, and the range that the second byte must lie in.
struct Lead {
  uint32_t length;
  uint8_t second_low;
  uint8_t second_high;
};

Lead classify_lead(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};  // no overlong forms
  if (byte == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // nothing above U+10FFFF
  return {0, 0, 0};
}

}  // namespace

Utf8Char decode_utf8(std::string_view text, size_t at) {
  const auto lead_byte = static_cast<uint8_t>(text[at]);
  if (lead_byte < 0x80) return {lead_byte, 1, Utf8Status::kValid};
  const Lead lead = classify_lead(lead_byte);
  if (lead.length == 0) return {kReplacementCharacter, 1, Utf8Status::kInvalid};
  char32_t code = lead_byte & (0xFF >> (lead.length + 1));
  for (uint32_t i = 1; i < lead.length; ++i) {
    if (at + i >= text.size()) return {kReplacementCharacter, i, Utf8Status::kTruncated};
    const auto byte = static_cast<uint8_t>(text[at + i]);
    const uint8_t low = i == 1 ? lead.second_low : 0x80;
    const uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {kReplacementCharacter, i, Utf8Status::kInvalid};
    code = (code << 6) | (byte & 0x3F);
  }
  return {code, lead.length, Utf8Status::kValid};
}

bool is_valid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    if (at + 8 <= text.size()) {
      std::memcpy(&eight, text.data() + at, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const Utf8Char character = decode_utf8(text, at);
    if (character.status != Utf8Status::kValid) return false;
    at += character.length;
  }
  return true;
}

void append_utf8(char32_t code, std::string& out) {
  const auto tail = [&](int shift) { out.push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3F))); };
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code >> 6)));
    tail(0);
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code >> 12)));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | (code >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_white_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

}  // namespace assay::tokenizer_internal
