// UTF-8 one character at a time, strict as Unicode 15 table 3-7 (no overlong forms, surrogates or values
// above U+10FFFF). An invalid sequence is reported as its "maximal subpart" (Unicode 15, 3.9), as Python and
// WHATWG do. Thread safety: pure functions. Cost: O(length). Nothing allocates except the append functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::tokenizer_internal {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;
inline constexpr std::string_view kReplacementText = "\xEF\xBF\xBD";

enum class Utf8Status : uint8_t {
  kValid,
  kInvalid,    // these bytes can never be part of a character
  kTruncated,  // the text ends inside a character that was valid so far
};

struct Utf8Char {
  char32_t code = kReplacementCharacter;
  uint32_t length = 0;  // bytes to step over, at least 1
  Utf8Status status = Utf8Status::kInvalid;
};

// The character at text[at]; `at` must be inside the text.
Utf8Char decode_utf8(std::string_view text, size_t at);

bool is_valid_utf8(std::string_view text);

// `code` must be a Unicode scalar value.
void append_utf8(char32_t code, std::string& out);

// Unicode's White_Space property.
bool is_white_space(char32_t code);

}  // namespace assay::tokenizer_internal
