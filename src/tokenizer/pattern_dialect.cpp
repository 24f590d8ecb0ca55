#include "tokenizer/pattern_dialect.h"

#include <array>

namespace assay::tokenizer_internal {
namespace {

constexpr std::string_view kSpaceInSet = "\\t-\\r\\x{85}\\p{Z}";

constexpr std::array<std::string_view, 16> kScripts = {
    "Han",    "Hiragana", "Katakana", "Hangul", "Thai",   "Lao",     "Khmer",      "Myanmar",
    "Arabic", "Latin",    "Cyrillic", "Greek",  "Hebrew", "Bengali", "Devanagari", "Tamil"};

bool starts_with_script(std::string_view text) {
  for (const std::string_view script : kScripts) {
    if (text.starts_with(script) && text.substr(script.size()).starts_with('}')) return true;
  }
  return false;
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '\\' && at_ + 1 < pattern_.size()) {
        RETURN_IF_ERROR(translate_escape());
      } else if (depth_ > 0) {
        RETURN_IF_ERROR(translate_in_set());
      } else {
        if (pattern_[at_] == '[')
          open_set();
        else
          out_.push_back(pattern_[at_++]);
      }
    }
    return std::move(out_);
  }

 private:
  void open_set() {
    depth_ = 1;
    out_.push_back(pattern_[at_++]);
    if (at_ < pattern_.size() && pattern_[at_] == '^') out_.push_back(pattern_[at_++]);
  }

  Result<void> translate_escape() {
    const char escaped = pattern_[at_ + 1];
    if (escaped == 's') {
      out_.append(depth_ > 0 ? "" : "[").append(kSpaceInSet).append(depth_ > 0 ? "" : "]");
    } else if (escaped == 'S') {
      if (depth_ > 0) return fail(ErrorCode::kUnsupported, pattern_, "\\S inside a set is not supported");
      out_.append("[^").append(kSpaceInSet).append("]");
    } else {
      out_.append(pattern_.substr(at_, 2));
      const std::string_view rest = pattern_.substr(at_ + 2);
      if ((escaped == 'p' || escaped == 'P') && rest.starts_with('{') && starts_with_script(rest.substr(1))) {
        out_.append("{sc:");
        ++at_;
      }
    }
    at_ += 2;
    return {};
  }

  Result<void> translate_in_set() {
    const std::string_view rest = pattern_.substr(at_);
    if (rest.starts_with("&&")) {
      return fail(ErrorCode::kUnsupported, pattern_, "the set intersection at byte {} is not supported", at_);
    }
    if (rest.starts_with("[:")) {
      const size_t close = rest.find(":]");
      if (close != std::string_view::npos) {
        out_.append(rest.substr(0, close + 2));
        at_ += close + 2;
        return {};
      }
    }
    if (rest.starts_with("[^")) {
      return fail(ErrorCode::kUnsupported, pattern_, "the negated set in a set at byte {} is not supported",
                  at_);
    }
    if (rest.starts_with('[') || rest.starts_with(']')) {
      depth_ += rest.starts_with('[') ? 1 : -1;
      if (depth_ == 0) out_.push_back(']');
      ++at_;  // the union of a set with its inner sets is one flat set
      return {};
    }
    out_.push_back(pattern_[at_++]);
    return {};
  }

  std::string_view pattern_;
  std::string out_;
  size_t at_ = 0;
  int depth_ = 0;  // of brackets around the current character
};

}  // namespace

Result<std::string> to_pcre2_dialect(std::string_view pattern) {
  return Translator(pattern).run();
}

}  // namespace assay::tokenizer_internal
