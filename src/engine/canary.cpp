#include "engine/canary.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace assay {
namespace {

constexpr const char* kText = "The capital of France is Paris, and the capital of Germany is";

Result<GeneratedText> run(Engine& engine, GenerationRequest request) {
  request.sampling.temperature = 0;
  ASSIGN_OR_RETURN(GeneratedText text, generate(engine, std::move(request)));
  if (text.completion.reason == FinishReason::kLength) return text;
  return std::unexpected(
      text.completion.error.value_or(Error{ErrorCode::kInternal, "canary", "the first request was cut"}));
}

}  // namespace

std::vector<int32_t> canary_prompt(const Tokenizer& tokenizer) {
  std::vector<int32_t> prompt = tokenizer.encode(kText);
  if (prompt.empty()) prompt.push_back(0);  // a vocabulary without letters
  return prompt;
}

Result<CanaryAnswer> ask_canary(Engine& engine) {
  CanaryAnswer answer{canary_prompt(engine.tokenizer()), {}};
  GenerationRequest request;
  request.prompt = answer.prompt;
  request.sampling.logprobs = true;
  request.max_tokens = std::max(
      1, std::min(kCanaryTokens, engine.max_context() - static_cast<int>(std::ssize(answer.prompt)) - 1));
  request.ignore_end_of_generation = true;
  ASSIGN_OR_RETURN(GeneratedText text, run(engine, std::move(request)));
  const bool sound =
      std::ranges::all_of(text.logprobs, [](float value) { return std::isfinite(value) && value <= 0; });
  if (!sound || text.tokens.empty())
    return fail(ErrorCode::kInternal, "canary", "the model's first answer has no sound probabilities");
  answer.tokens = std::move(text.tokens);
  return answer;
}

Result<void> match_canary(const CanaryAnswer& answer, const std::vector<int32_t>& reference) {
  const size_t n = std::min(answer.tokens.size(), reference.size());
  for (size_t i = 0; i < n; ++i) {
    if (answer.tokens[i] == reference[i]) continue;
    return fail(
        ErrorCode::kInternal, "canary",
        "token {} of the first answer is {}, the record of this precision has {}: model, kernels or memory "
        "are not what was measured",
        i, answer.tokens[i], reference[i]);
  }
  return {};
}

Result<void> reread_canary(Engine& engine, const CanaryAnswer& answer, double slack_nats) {
  GenerationRequest request;
  request.prompt = answer.prompt;
  request.prompt.insert(request.prompt.end(), answer.tokens.begin(), answer.tokens.end());
  request.max_tokens = 0;
  request.prompt_output.logprobs = true;
  request.prompt_output.top_logprobs = 1;
  ASSIGN_OR_RETURN(const GeneratedText text, run(engine, std::move(request)));
  if (text.prompt.size() + 1 != answer.prompt.size() + answer.tokens.size())
    return fail(ErrorCode::kInternal, "canary", "the prompt's log-probabilities are not complete");
  for (size_t i = 0; i < answer.tokens.size(); ++i) {
    const PromptTokenLogprob& read = text.prompt[answer.prompt.size() - 1 + i];
    const float best = read.top.empty() ? 0 : read.top.front().logprob;
    if (read.token == answer.tokens[i] && std::isfinite(read.logprob) && best - read.logprob <= slack_nats)
      continue;
    return fail(ErrorCode::kInternal, "canary",
                "token {} of the first answer was the most likely one when it was chosen; read again it is "
                "{:.3f} nats "
                "behind: kernels or memory are not sound",
                i, best - read.logprob);
  }
  return {};
}

}  // namespace assay
