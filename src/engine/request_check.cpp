#include "engine/request_check.h"

#include <algorithm>

namespace assay {
namespace {

constexpr size_t kMostStops = 16;
constexpr size_t kLongestStop = 4096;  // bytes; bounds the text that is held back
constexpr double kHeaviestWeight = 1e6;
constexpr int kWidestPriority = 100;
constexpr int kMostTopLogprobs = 20;

Result<void> check_stops(const std::vector<std::string>& stops) {
  if (stops.size() > kMostStops)
    return fail(ErrorCode::kInvalidArgument, "stop", "expected at most {} stop strings, found {}", kMostStops,
                stops.size());
  for (const std::string& stop : stops) {
    if (stop.empty()) return fail(ErrorCode::kInvalidArgument, "stop", "a stop string is empty");
    if (stop.size() > kLongestStop)
      return fail(ErrorCode::kInvalidArgument, "stop", "expected at most {} bytes in a stop string, found {}",
                  kLongestStop, stop.size());
    // Otherwise text could be released that ends inside a character.
    if ((static_cast<unsigned char>(stop.front()) & 0xC0) == 0x80)
      return fail(ErrorCode::kInvalidArgument, "stop",
                  "a stop string is not valid UTF-8: it starts inside a character");
  }
  return {};
}

Result<void> check_share(const RequestClass& share) {
  if (!(share.weight > 0) || share.weight > kHeaviestWeight)
    return fail(ErrorCode::kInvalidArgument, "weight", "expected a number above 0 and at most {}, found {}",
                kHeaviestWeight, share.weight);
  if (share.priority < -kWidestPriority || share.priority > kWidestPriority)
    return fail(ErrorCode::kInvalidArgument, "priority", "expected a whole number from {} to {}, found {}",
                -kWidestPriority, kWidestPriority, share.priority);
  if (share.ttft_bound_seconds && !(*share.ttft_bound_seconds > 0))
    return fail(ErrorCode::kInvalidArgument, "ttft_bound", "expected a time above 0 s, found {} s",
                *share.ttft_bound_seconds);
  return {};
}

Result<void> check_prompt_output(const GenerationRequest& request) {
  const PromptOutput& wanted = request.prompt_output;
  if (wanted.top_logprobs < 0 || wanted.top_logprobs > kMostTopLogprobs)
    return fail(ErrorCode::kInvalidArgument, "top_logprobs", "expected 0 to {}, found {}", kMostTopLogprobs,
                wanted.top_logprobs);
  const bool nothing = request.max_tokens == 0 && !wanted.wanted();
  if (nothing || request.max_tokens < -1)
    return fail(ErrorCode::kInvalidArgument, "max_tokens",
                "expected a positive number, or -1 for no limit, found {}", request.max_tokens);
  return {};
}

Result<void> check_prompt(const std::vector<int32_t>& prompt, const RequestLimits& limits) {
  if (prompt.empty())
    return fail(ErrorCode::kInvalidArgument, "prompt", "expected at least one token, found none");
  if (std::cmp_greater_equal(prompt.size(), limits.max_context))
    return fail(ErrorCode::kInvalidArgument, "prompt",
                "expected at most {} tokens (the context of {} less one to generate), found {}",
                limits.max_context - 1, limits.max_context, prompt.size());
  const auto outside =
      std::ranges::find_if(prompt, [&](int32_t token) { return token < 0 || token >= limits.n_vocab; });
  if (outside != prompt.end())
    return fail(ErrorCode::kInvalidArgument, "prompt", "expected token ids below {}, found {}",
                limits.n_vocab, *outside);
  return {};
}

}  // namespace

Result<int64_t> check_request(const GenerationRequest& request, const RequestLimits& limits) {
  RETURN_IF_ERROR(check_prompt(request.prompt, limits));
  RETURN_IF_ERROR(check_stops(request.stop));
  RETURN_IF_ERROR(request.sampling.validate(limits.n_vocab));
  RETURN_IF_ERROR(check_share(request.share));
  RETURN_IF_ERROR(check_prompt_output(request));
  if (request.max_tokens < 0) return limits.max_context;
  return std::min(limits.max_context, std::ssize(request.prompt) + int64_t{request.max_tokens});
}

}  // namespace assay
