#include "tokenizer/jinja/unicode.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "tokenizer/jinja/unicode_table.h"

namespace assay::tokenizer_internal::jinja {
namespace {

constexpr char32_t kEscapedByte = 0xDC00;  // an invalid byte b is carried as 0xDC00 + b
constexpr char32_t kCapitalSigma = 0x3A3;

bool contains(std::span<const CharacterRange> ranges, char32_t character) {
  auto it = std::upper_bound(ranges.begin(), ranges.end(), character,
                             [](char32_t c, const CharacterRange& range) { return c < range.first; });
  return it != ranges.begin() && character <= std::prev(it)->last;
}

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

// Length of the well-formed sequence at the start of `text`, or 0. The ranges are Unicode's table 3-7.
size_t sequence_length(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  size_t length = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  }
  if (length == 0 || text.size() < length || at(1) < low || at(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (!is_continuation(at(i))) return 0;
  }
  return length;
}

struct CaseMapping {
  std::span<const CaseRun> runs;
  std::span<const CaseExpansion> expansions;
};

const CaseMapping kUpper{upper_runs, upper_expansions};
const CaseMapping kLower{lower_runs, lower_expansions};
const CaseMapping kTitle{title_runs, title_expansions};

void append_mapped(std::string& out, char32_t character, const CaseMapping& mapping) {
  auto expansion = std::lower_bound(mapping.expansions.begin(), mapping.expansions.end(), character,
                                    [](const CaseExpansion& e, char32_t c) { return e.character < c; });
  if (expansion != mapping.expansions.end() && expansion->character == character) {
    out += expansion->text;
    return;
  }
  // Runs with a stride may overlap in range, never in their members, so earlier runs are tried as well.
  auto run = std::upper_bound(mapping.runs.begin(), mapping.runs.end(), character,
                              [](char32_t c, const CaseRun& r) { return c < r.first; });
  for (int tries = 0; run != mapping.runs.begin() && tries < 4; ++tries) {
    --run;
    if (character <= run->last && (character - run->first) % run->stride == 0) {
      append_character(out, static_cast<char32_t>(static_cast<int64_t>(character) + run->delta));
      return;
    }
  }
  append_character(out, character);
}

bool is_cased(char32_t c) {
  return is_lowercase(c) || is_uppercase(c) || is_titlecase(c);
}
bool is_case_ignorable(char32_t c) {
  return contains(case_ignorable_ranges, c);
}

// Lowers one character after the other. Unicode's Final_Sigma: a sigma is final when a cased letter stands
// before it and none after it, case-ignorable characters skipped. Linear in all: the look ahead stops where
// the next one starts.
class LowerCaser {
 public:
  // Appends `c`, which ends at byte `end` of `text`.
  void append(std::string& out, std::string_view text, size_t end, char32_t c) {
    if (c == kCapitalSigma) {
      append_character(out, cased_before_ && !cased_follows(text, end) ? 0x3C2 : 0x3C3);
    } else {
      append_mapped(out, c, kLower);
    }
    skip(c);
  }
  void skip(char32_t c) {
    if (!is_case_ignorable(c)) cased_before_ = is_cased(c);
  }

 private:
  static bool cased_follows(std::string_view text, size_t position) {
    while (position < text.size()) {
      const char32_t c = decode_character(text, position);
      if (!is_case_ignorable(c)) return is_cased(c);
    }
    return false;
  }

  bool cased_before_ = false;
};

}  // namespace

char32_t decode_character(std::string_view text, size_t& position) {
  const std::string_view rest = text.substr(position);
  const auto at = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(rest[i])); };
  const size_t length = sequence_length(rest);
  position += std::max<size_t>(length, 1);
  switch (length) {
    case 1:
      return at(0);
    case 2:
      return (at(0) & 0x1F) << 6 | (at(1) & 0x3F);
    case 3:
      return (at(0) & 0x0F) << 12 | (at(1) & 0x3F) << 6 | (at(2) & 0x3F);
    case 4:
      return (at(0) & 0x07) << 18 | (at(1) & 0x3F) << 12 | (at(2) & 0x3F) << 6 | (at(3) & 0x3F);
    default:
      return kEscapedByte + at(0);
  }
}

void append_character(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c > kEscapedByte && c <= kEscapedByte + 0xFF) {
    out += static_cast<char>(c - kEscapedByte);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (size_t position = 0; position < text.size(); ++count) decode_character(text, position);
  return count;
}

size_t character_offset(std::string_view text, size_t index) {
  size_t position = 0;
  for (; index > 0 && position < text.size(); --index) decode_character(text, position);
  return position;
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alphabetic(char32_t c) {
  return contains(alphabetic_ranges, c);
}
bool is_decimal(char32_t c) {
  return contains(decimal_ranges, c);
}
bool is_digit(char32_t c) {
  return contains(digit_ranges, c);
}
bool is_numeric(char32_t c) {
  return contains(numeric_ranges, c);
}
bool is_alphanumeric(char32_t c) {
  return is_alphabetic(c) || is_digit(c) || is_decimal(c) || is_numeric(c);
}
bool is_word(char32_t c) {
  return c == '_' || is_alphanumeric(c);
}
bool is_lowercase(char32_t c) {
  return contains(lowercase_ranges, c);
}
bool is_uppercase(char32_t c) {
  return contains(uppercase_ranges, c);
}
bool is_titlecase(char32_t c) {
  return contains(titlecase_ranges, c);
}
bool is_printable(char32_t c) {
  return !contains(unprintable_ranges, c) && !(c >= kEscapedByte && c <= kEscapedByte + 0xFF);
}

std::string to_upper(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) append_mapped(out, decode_character(text, i), kUpper);
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  LowerCaser lower;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = decode_character(text, i);
    lower.append(out, text, i, c);
  }
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  LowerCaser lower;
  bool inside_word = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = decode_character(text, i);
    if (inside_word) {
      lower.append(out, text, i, c);
    } else {
      append_mapped(out, c, kTitle);
      lower.skip(c);
    }
    inside_word = is_cased(c);
  }
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  LowerCaser lower;
  for (size_t i = 0; i < text.size();) {
    const bool first = i == 0;
    const char32_t c = decode_character(text, i);
    if (first) {
      append_mapped(out, c, kTitle);
      lower.skip(c);
    } else {
      lower.append(out, text, i, c);
    }
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  LowerCaser lower;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = decode_character(text, i);
    if (is_uppercase(c)) {
      lower.append(out, text, i, c);
      continue;
    }
    if (is_lowercase(c)) {
      append_mapped(out, c, kUpper);
    } else {
      append_character(out, c);
    }
    lower.skip(c);
  }
  return out;
}

std::string_view strip_left(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    if (!is_space(decode_character(text, i))) return text.substr(begin);
  }
  return {};
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && text.size() - begin < 4 && is_continuation(static_cast<unsigned char>(text[begin])))
      --begin;
    size_t end = begin;
    const char32_t c = decode_character(text, end);
    if (end != text.size() || !is_space(c)) return text;
    text = text.substr(0, begin);
  }
  return {};
}

}  // namespace assay::tokenizer_internal::jinja
