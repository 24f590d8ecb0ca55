#include "quality/text.h"

#include <xxhash.h>

#include <algorithm>

namespace assay {

int64_t QualityText::n_tokens() const {
  int64_t total = 0;
  for (const QualitySequence& sequence : sequences) total += static_cast<int64_t>(sequence.tokens.size());
  return total;
}

int64_t QualityText::n_scored() const {
  int64_t total = 0;
  for (const QualitySequence& sequence : sequences) {
    total += std::max<int64_t>(
        0, static_cast<int64_t>(sequence.tokens.size()) - std::max(1, sequence.first_scored));
  }
  return total;
}

int QualityText::longest() const {
  size_t longest = 0;
  for (const QualitySequence& sequence : sequences) longest = std::max(longest, sequence.tokens.size());
  return static_cast<int>(longest);
}

TextSource QualityText::source() const {
  uint64_t hash = 0;  // chained: each sequence's hash seeds the next
  for (const QualitySequence& sequence : sequences) {
    hash = XXH64(sequence.tokens.data(), sequence.tokens.size() * sizeof(int32_t), hash);
    hash = XXH64(&sequence.n_prompt, sizeof(sequence.n_prompt), hash);
  }
  return {.name = name,
          .hash = fmt::format("{:016x}", hash),
          .n_sequences = static_cast<int64_t>(sequences.size()),
          .n_tokens = n_tokens(),
          .n_scored = n_scored()};
}

Result<QualityText> make_windows(const Tokenizer& tokenizer, std::string_view text, std::string name,
                                 int window, int max_windows) {
  if (window < 4)
    return fail(ErrorCode::kInvalidArgument, name, "a window needs at least 4 tokens, not {}", window);
  const std::vector<int32_t> ids = tokenizer.encode(text);
  const size_t size = static_cast<size_t>(window);
  if (ids.size() < size) {
    return fail(ErrorCode::kInvalidArgument, name, "has {} tokens, fewer than one window of {}", ids.size(),
                window);
  }
  QualityText result{.name = std::move(name), .sequences = {}};
  const bool with_bos = tokenizer.spec().add_bos && tokenizer.bos();
  for (size_t start = 0; start + size <= ids.size(); start += size) {
    if (max_windows > 0 && result.sequences.size() == static_cast<size_t>(max_windows)) break;
    QualitySequence& sequence = result.sequences.emplace_back();
    sequence.tokens.assign(ids.begin() + static_cast<int64_t>(start),
                           ids.begin() + static_cast<int64_t>(start + size));
    if (with_bos) sequence.tokens[0] = *tokenizer.bos();
    sequence.n_prompt = window;
    sequence.first_scored = window / 2 + 1;
  }
  return result;
}

}  // namespace assay
