#include "serve/utf8_text.h"

#include <cstdint>

namespace assay {
namespace {

struct Step {
  size_t length = 1;  // bytes to step over
  bool valid = false;
};

// The character or invalid sequence that starts at `at`.
Step step_at(std::string_view bytes, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[at + i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  for (size_t i = 1; i < length; ++i) {
    if (at + i >= bytes.size()) return {i, false};
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    if (i == 1 && lead == 0xE0) low = 0xA0;   // overlong
    if (i == 1 && lead == 0xED) high = 0x9F;  // surrogates
    if (i == 1 && lead == 0xF0) low = 0x90;   // overlong
    if (i == 1 && lead == 0xF4) high = 0x8F;  // above U+10FFFF
    if (byte(i) < low || byte(i) > high) return {i, false};
  }
  return {length, true};
}

}  // namespace

bool is_valid_utf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const Step step = step_at(bytes, at);
    if (!step.valid) return false;
    at += step.length;
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const Step step = step_at(bytes, at);
    text.append(step.valid ? bytes.substr(at, step.length) : std::string_view("\xEF\xBF\xBD"));
    at += step.length;
  }
  return text;
}

}  // namespace assay
