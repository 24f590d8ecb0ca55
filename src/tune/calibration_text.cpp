#include "tune/calibration_text.h"

#include <algorithm>

#include "base/random.h"
#include "tune/continuation.h"

namespace assay {
namespace {

// What every chat prompt starts with, up to the user's first word. Empty without a usable template.
std::vector<int32_t> opening_of_a_turn(const LoadedModel& model) {
  if (!model.has_template()) return {};
  const auto a = model.render({{"user", "A"}}), b = model.render({{"user", "B"}});
  if (!a || !b) return {};
  const auto differ = std::ranges::mismatch(*a, *b);
  return model.encode_prompt(std::string(a->begin(), differ.in1));
}

}  // namespace

Result<std::vector<std::vector<int32_t>>> write_calibration_text(const LoadedModel& model, uint64_t seed,
                                                                 const std::function<bool(double)>& progress) {
  Random random(seed, "calibration text");
  const std::vector<int32_t> opening = opening_of_a_turn(model);
  std::vector<std::vector<int32_t>> sequences;
  size_t longest = 1;
  for (int i = 0; i < kCalibrationSequences; ++i) {
    if (i % 2 == 1 && !opening.empty()) {
      sequences.push_back(opening);
    } else {
      const auto vocabulary = static_cast<uint64_t>(model.tokenizer()->vocab_size());
      sequences.push_back({static_cast<int32_t>(random.below(vocabulary))});
    }
    longest = std::max(longest, sequences.back().size());
  }
  const int room = model.model()->max_context() - static_cast<int>(longest);
  if (room < 1) return fail(ErrorCode::kInvalidArgument, "calibration text", "the context holds no text");
  ASSIGN_OR_RETURN(const auto continuations,
                   continue_all(model, sequences,
                                {.n_tokens = std::min(kCalibrationTokens, room),
                                 .seed = random.next(),
                                 .past_the_end = true,
                                 .progress = progress}));
  for (size_t i = 0; i < sequences.size(); ++i) {
    sequences[i].insert(sequences[i].end(), continuations[i].begin(), continuations[i].end());
  }
  return sequences;
}

Result<std::vector<std::vector<int32_t>>> cut_calibration_text(const LoadedModel& model, std::string_view text,
                                                               int most) {
  const std::vector<int32_t> tokens = model.tokenizer()->encode(std::string(text));
  const size_t n_windows = tokens.size() / kCalibrationTokens;
  if (n_windows == 0) {
    return fail(ErrorCode::kInvalidArgument, "calibration text", "expected at least {} tokens, found {}",
                kCalibrationTokens, tokens.size());
  }
  const size_t n = std::min(n_windows, static_cast<size_t>(std::max(most, 1)));
  std::vector<std::vector<int32_t>> sequences;
  for (size_t i = 0; i < n; ++i) {
    const auto first = tokens.begin() + static_cast<ptrdiff_t>(i * n_windows / n * kCalibrationTokens);
    sequences.emplace_back(first, first + kCalibrationTokens);
  }
  return sequences;
}

}  // namespace assay
