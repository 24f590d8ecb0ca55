#include "tokenizer/nfc/nfc.h"

#include <algorithm>
#include <tuple>
#include <utility>
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

// Characters that are their own composed form and never join the one before; a mark may still join them.
bool is_plain_starter(char32_t code) {
  return code < kFirstAffected || (code >= 0x3400 && code <= 0x9FFF);  // ideographs
}

// Collects stretches that may change and copies the rest.
class Normaliser {
 public:
  explicit Normaliser(std::string_view text) : text_(text) {}

  std::string run() {
    for (size_t at = 0; at < text_.size();) {
      const Utf8Char character = decode_utf8(text_, at);
      if (character.status != Utf8Status::kValid) {
        flush(at + character.length);  // separates, and is copied
      } else if (is_plain_starter(character.code)) {
        flush(at);
      } else {
        changing_ = true;
      }
      at += character.length;
    }
    flush(text_.size());
    return std::move(out_);
  }

 private:
  // Ends the stretch at `end`.
  void flush(size_t end) {
    const std::string_view stretch = text_.substr(begin_, end - begin_);
    begin_ = end;
    if (!changing_) {
      out_ += stretch;
      return;
    }
    changing_ = false;
    letters_.clear();
    size_t at = 0;
    for (Utf8Char character; at < stretch.size(); at += character.length) {
      character = decode_utf8(stretch, at);
      if (character.status != Utf8Status::kValid) break;  // only at the end
      append_decomposed(character.code, letters_);
    }
    sort_marks(letters_);
    append_composed(letters_, out_);
    out_ += stretch.substr(at);
  }

  std::string_view text_;
  std::string out_;
  size_t begin_ = 0;       // of the stretch
  bool changing_ = false;  // it holds a character other than a plain starter
  std::vector<Letter> letters_;
};

}  // namespace

std::string normalise_nfc(std::string_view text) {
  return Normaliser(text).run();
}

}  // namespace assay::tokenizer_internal
