#include "tokenizer/pre_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tokenizer/utf8.h"

namespace assay::tokenizer_internal {
namespace {

// A valid copy of a text: each byte that is not part of a character becomes U+FFFD.
struct Repaired {
  std::string text;
  std::vector<size_t> origin;  // [text.size() + 1], the offset in the original of each byte
};

Repaired repair(std::string_view text) {
  Repaired repaired;
  repaired.text.reserve(text.size() + text.size() / 2);
  for (size_t at = 0; at < text.size();) {
    const Utf8Char character = decode_utf8(text, at);
    const bool valid = character.status == Utf8Status::kValid;
    const size_t step = valid ? character.length : 1;
    const std::string_view bytes = valid ? text.substr(at, step) : kReplacementText;
    repaired.text += bytes;
    repaired.origin.insert(repaired.origin.end(), bytes.size(), at);
    at += step;
  }
  repaired.origin.push_back(text.size());
  return repaired;
}

}  // namespace

Result<PreTokenizer> PreTokenizer::create(std::span<const std::string> patterns) {
  PreTokenizer result;
  for (const std::string& pattern : patterns) {
    ASSIGN_OR_RETURN(auto step, make_split_step(pattern));
    result.steps_.push_back(std::move(step));
  }
  return result;
}

void PreTokenizer::split(std::string_view text, std::vector<size_t>& ends) const {
  if (is_valid_utf8(text)) {
    split_valid(text, ends);
    return;
  }
  const Repaired repaired = repair(text);
  split_valid(repaired.text, ends);
  for (size_t& end : ends) end = repaired.origin[end];
}

void PreTokenizer::split_valid(std::string_view text, std::vector<size_t>& ends) const {
  ends.clear();
  if (text.empty()) return;
  ends.push_back(text.size());
  std::vector<size_t> finer;
  for (const auto& step : steps_) {
    finer.clear();
    size_t begin = 0;
    for (const size_t end : ends) {
      step->split(text, begin, end, finer);
      begin = end;
    }
    ends.swap(finer);
  }
}

Result<const PreTokenizerRules*> find_pre_tokenizer_rules(std::string_view name) {
  for (const PreTokenizerRules& rules : all_pre_tokenizer_rules()) {
    if (std::ranges::find(rules.names, name) != rules.names.end()) return &rules;
  }
  std::vector<std::string_view> known;
  for (const PreTokenizerRules& rules : all_pre_tokenizer_rules()) {
    known.insert(known.end(), rules.names.begin(), rules.names.end());
  }
  std::ranges::sort(known);
  return fail(ErrorCode::kUnsupported, "pre-tokenizer", "expected one of {}; found '{}'",
              fmt::join(known, ", "), name);
}

}  // namespace assay::tokenizer_internal
