#include "tokenizer/nfc/nfc.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "tokenizer/nfc/tables.h"
#include "tokenizer/utf8.h"

namespace assay::tokenizer_internal {
namespace {

// Hangul is composed by arithmetic (Unicode 15, 3.12).
constexpr char32_t kLeadBase = 0x1100, kVowelBase = 0x1161, kTailBase = 0x11A7, kSyllableBase = 0xAC00;
constexpr char32_t kLeads = 19, kVowels = 21, kTails = 28;
constexpr char32_t kSyllables = kLeads * kVowels * kTails;

// Below this every character is its own composed form and starts a new one.
constexpr char32_t kFirstAffected = 0x300;

struct Letter {
  char32_t code;
  uint8_t combining_class;
};

uint8_t combining_class(char32_t code) {
  if (code < kFirstAffected) return 0;
  const auto runs = combining_runs();
  const auto after = std::ranges::upper_bound(runs, code, {}, &CombiningRun::first);
  if (after == runs.begin() || std::prev(after)->last < code) return 0;
  return std::prev(after)->combining_class;
}

void append_decomposed(char32_t code, std::vector<Letter>& out) {
  if (code - kSyllableBase < kSyllables) {
    const char32_t index = code - kSyllableBase;
    out.push_back({kLeadBase + index / (kVowels * kTails), 0});
    out.push_back({kVowelBase + index % (kVowels * kTails) / kTails, 0});
    if (index % kTails != 0) out.push_back({kTailBase + index % kTails, 0});
    return;
  }
  const auto found = std::ranges::lower_bound(decompositions(), code, {}, &Decomposition::code);
  if (found == decompositions().end() || found->code != code) {
    out.push_back({code, combining_class(code)});
    return;
  }
  for (const char32_t letter : decomposition_letters().subspan(found->start, found->count)) {
    out.push_back({letter, combining_class(letter)});
  }
}

// 0 when the two do not compose.
char32_t compose(char32_t first, char32_t second) {
  if (first - kLeadBase < kLeads && second - kVowelBase < kVowels) {
    return kSyllableBase + ((first - kLeadBase) * kVowels + (second - kVowelBase)) * kTails;
  }
  if (first - kSyllableBase < kSyllables && (first - kSyllableBase) % kTails == 0 && second > kTailBase &&
      second < kTailBase + kTails) {
    return first + (second - kTailBase);
  }
  const auto key = [](const Composition& entry) { return std::tuple(entry.first, entry.second); };
  const auto found = std::ranges::lower_bound(compositions(), std::tuple(first, second), {}, key);
  if (found == compositions().end() || key(*found) != std::tuple(first, second)) return 0;
  return found->composed;
}

// Canonical order: marks by class, those of one class as they came.
void sort_marks(std::vector<Letter>& letters) {
  for (auto at = letters.begin(); at != letters.end();) {
    const auto is_starter = [](const Letter& letter) { return letter.combining_class == 0; };
    const auto begin = std::find_if_not(at, letters.end(), is_starter);
    const auto end = std::find_if(begin, letters.end(), is_starter);
    std::ranges::stable_sort(begin, end, {}, &Letter::combining_class);
    at = end;
  }
}

// Each letter joins the last starter, unless one of its own or a higher class stands between.
void append_composed(const std::vector<Letter>& letters, std::string& out) {
  std::vector<Letter> done;
  size_t starter = letters.size() + 1;  // none yet
  for (const Letter& letter : letters) {
    if (starter < done.size()) {
      const bool adjacent = starter + 1 == done.size();
      const bool blocked = !adjacent && done.back().combining_class >= letter.combining_class;
      const char32_t composed = blocked ? 0 : compose(done[starter].code, letter.code);
      if (composed != 0) {
        done[starter].code = composed;
        continue;
      }
    }
    if (letter.combining_class == 0) starter = done.size();
    done.push_back(letter);
  }
  for (const Letter& letter : done) append_utf8(letter.code, out);
}

bool can_change(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char character = decode_utf8(text, at);
    if (character.status == Utf8Status::kValid && character.code >= kFirstAffected) return true;
    at += character.length;
  }
  return false;
}

}  // namespace

std::string normalise_nfc(std::string_view text) {
  if (!can_change(text)) return std::string(text);
  std::string out;
  std::vector<Letter> letters;
  const auto flush = [&] {
    sort_marks(letters);
    append_composed(letters, out);
    letters.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const Utf8Char character = decode_utf8(text, at);
    if (character.status == Utf8Status::kValid) {
      append_decomposed(character.code, letters);
    } else {
      flush();
      out += text.substr(at, character.length);
    }
    at += character.length;
  }
  flush();
  return out;
}

}  // namespace assay::tokenizer_internal
