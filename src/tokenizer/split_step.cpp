#include "tokenizer/split_step.h"

#include <cstdint>
#include <string>
#include <utility>

#include "tokenizer/pattern_dialect.h"
#include "tokenizer/regex.h"
#include "tokenizer/utf8.h"

namespace assay::tokenizer_internal {
namespace {

// Calls found(begin, end) for each match in `piece`, left to right without overlap.
template <class Found>
void for_each_match(const Regex& regex, std::string_view piece, Found found) {
  Regex::Matches matches;
  for (size_t at = 0; at < piece.size();) {
    const auto span = regex.find(piece, at, matches);
    if (!span) return;
    found(span->begin, span->end);
    at = span->end;
    if (span->begin == span->end) at += at < piece.size() ? decode_utf8(piece, at).length : 1;
  }
}

// Collects cuts as ends of pieces; repeated and leading ones make no empty pieces.
class Cutter {
 public:
  Cutter(size_t begin, std::vector<size_t>& ends) : begin_(begin), ends_(ends) {}
  void cut(size_t at) {
    if (at <= last_) return;
    last_ = at;
    ends_.push_back(begin_ + at);
  }

 private:
  size_t begin_;
  size_t last_ = 0;
  std::vector<size_t>& ends_;
};

class PatternStep : public SplitStep {
 public:
  explicit PatternStep(Regex regex) : regex_(std::move(regex)) {}

  void split(std::string_view text, size_t begin, size_t end, std::vector<size_t>& ends) const override {
    const std::string_view piece = text.substr(begin, end - begin);
    Cutter cutter(begin, ends);
    for_each_match(regex_, piece, [&](size_t from, size_t to) {
      cutter.cut(from);
      cutter.cut(to);
    });
    cutter.cut(piece.size());
  }

 private:
  Regex regex_;
};

// `runs` matches whole runs of decimal digits.
class DigitGroupStep : public SplitStep {
 public:
  DigitGroupStep(Regex runs, bool isolate_runs) : runs_(std::move(runs)), isolate_runs_(isolate_runs) {}

  void split(std::string_view text, size_t begin, size_t end, std::vector<size_t>& ends) const override {
    const std::string_view piece = text.substr(begin, end - begin);
    Cutter cutter(begin, ends);
    std::vector<size_t> digits;  // starts of the characters of one run
    for_each_match(runs_, piece, [&](size_t from, size_t to) {
      digits.clear();
      for (size_t at = from; at < to; at += decode_utf8(piece, at).length) digits.push_back(at);
      if (isolate_runs_) cutter.cut(from);
      for (size_t i = digits.size() % 3; i < digits.size(); i += 3) cutter.cut(digits[i]);
      if (isolate_runs_) cutter.cut(to);
    });
    cutter.cut(piece.size());
  }

 private:
  Regex runs_;
  bool isolate_runs_;
};

class SpaceHalvingStep : public SplitStep {
 public:
  void split(std::string_view text, size_t begin, size_t end, std::vector<size_t>& ends) const override {
    const std::string_view piece = text.substr(begin, end - begin);
    Cutter cutter(begin, ends);
    size_t left = count_spaces(piece);
    size_t at = 0;
    for (size_t width = kWidest; width > 0 && left > 0; width /= 2) {
      for (; left >= width; left -= width) {
        for (size_t i = 0; i < width; ++i) at += decode_utf8(piece, at).length;
        cutter.cut(at);
      }
    }
    cutter.cut(piece.size());
  }

 private:
  static constexpr size_t kWidest = 512;

  // The number of characters when all of them are white space and none ends a line, else 0.
  static size_t count_spaces(std::string_view piece) {
    size_t count = 0;
    for (size_t at = 0; at < piece.size(); ++count) {
      const Utf8Char character = decode_utf8(piece, at);
      if (!is_white_space(character.code) || character.code == '\n' || character.code == '\r') return 0;
      at += character.length;
    }
    return count;
  }
};

}  // namespace

Result<std::unique_ptr<SplitStep>> make_split_step(std::string_view pattern) {
  // The look-behind keeps a run that does not qualify from being tried again at each of its digits. What may
  // not follow are Oniguruma's word characters, which in Latin-1 include superscripts and fractions.
  if (pattern == kDigitGroups) {
    ASSIGN_OR_RETURN(Regex runs,
                     Regex::compile(R"((?<!\p{Nd})\p{Nd}++)"
                                    R"((?![\p{L}\p{M}\p{Nl}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}]))"));
    return std::make_unique<DigitGroupStep>(std::move(runs), true);
  }
  if (pattern == kDigitCuts) {
    ASSIGN_OR_RETURN(Regex runs, Regex::compile(R"((?<!\p{Nd})\p{Nd}++)"));
    return std::make_unique<DigitGroupStep>(std::move(runs), false);
  }
  if (pattern == kSpaceHalvings) return std::make_unique<SpaceHalvingStep>();
  ASSIGN_OR_RETURN(const std::string translated, to_pcre2_dialect(pattern));
  ASSIGN_OR_RETURN(Regex regex, Regex::compile(translated));
  return std::make_unique<PatternStep>(std::move(regex));
}

}  // namespace assay::tokenizer_internal
