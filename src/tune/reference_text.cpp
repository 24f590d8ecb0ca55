#include "tune/reference_text.h"

#include "tune/continuation.h"

namespace assay {
namespace {

std::vector<int32_t> encode(const LoadedModel& model, const BuiltInPrompt& prompt) {
  if (prompt.kind == "chat" && model.has_template()) {
    if (const auto rendered = model.render({{"user", prompt.prompt}})) return model.encode_prompt(*rendered);
  }
  return model.tokenizer()->encode(prompt.prompt);
}

}  // namespace

Result<QualityText> continue_prompts(const LoadedModel& reference, uint64_t seed, int n_continue,
                                     const std::function<bool(double)>& progress) {
  QualityText text{.name = "built-in prompts, continued by the reference", .sequences = {}};
  for (const BuiltInPrompt& prompt : built_in_prompts()) {
    QualitySequence sequence{.tokens = encode(reference, prompt), .n_prompt = 0, .first_scored = 1};
    sequence.n_prompt = static_cast<int>(sequence.tokens.size());
    if (sequence.n_prompt < 1 || sequence.n_prompt + n_continue > reference.model()->max_context()) continue;
    text.sequences.push_back(std::move(sequence));
  }
  if (text.sequences.empty()) {
    return fail(ErrorCode::kInvalidArgument, reference.path().string(),
                "its context holds none of the prompts");
  }

  std::vector<std::vector<int32_t>> prompts;
  for (const QualitySequence& sequence : text.sequences) prompts.push_back(sequence.tokens);
  ASSIGN_OR_RETURN(
      const auto continuations,
      continue_all(reference, prompts, {.n_tokens = n_continue, .seed = seed, .progress = progress}));
  for (size_t i = 0; i < text.sequences.size(); ++i) {
    const std::vector<int32_t>& continuation = continuations[i];
    text.sequences[i].tokens.insert(text.sequences[i].tokens.end(), continuation.begin(), continuation.end());
  }
  return text;
}

}  // namespace assay
