#include "engine/sampling.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

struct Range {
  float low;
  float high;
  bool low_included = true;
};

Result<void> check(const char* field, float value, Range range) {
  const bool above = range.low_included ? value >= range.low : value > range.low;
  if (std::isfinite(value) && above && value <= range.high) return {};
  return fail(ErrorCode::kInvalidArgument, field, "expected a number in {}{}, {}], found {}",
              range.low_included ? '[' : '(', range.low, range.high, value);
}

Result<void> check_bias(const std::vector<std::pair<int32_t, float>>& bias, int32_t n_vocab) {
  // More entries than tokens can only be repetitions; the bound keeps the cost of a token bounded.
  if (std::cmp_greater(bias.size(), n_vocab))
    return fail(ErrorCode::kInvalidArgument, "logit_bias", "expected at most {} entries, found {}", n_vocab,
                bias.size());
  for (const auto& [token, value] : bias) {
    if (token < 0 || token >= n_vocab)
      return fail(ErrorCode::kInvalidArgument, "logit_bias", "expected token ids below {}, found {}", n_vocab,
                  token);
    RETURN_IF_ERROR(check("logit_bias", value, {-100, 100}));
  }
  return {};
}

}  // namespace

Result<void> SamplingParams::validate(int32_t n_vocab) const {
  RETURN_IF_ERROR(check("temperature", temperature, {0, 100}));
  if (top_k < 0)
    return fail(ErrorCode::kInvalidArgument, "top_k", "expected 0 (off) or a positive number, found {}",
                top_k);
  RETURN_IF_ERROR(check("top_p", top_p, {0, 1, false}));
  RETURN_IF_ERROR(check("min_p", min_p, {0, 1}));
  RETURN_IF_ERROR(check("presence_penalty", presence_penalty, {-2, 2}));
  RETURN_IF_ERROR(check("frequency_penalty", frequency_penalty, {-2, 2}));
  RETURN_IF_ERROR(check("repetition_penalty", repetition_penalty, {0, 10, false}));
  if (top_logprobs < 0 || top_logprobs > 20)
    return fail(ErrorCode::kInvalidArgument, "top_logprobs", "expected 0 to 20, found {}", top_logprobs);
  return check_bias(logit_bias, n_vocab);
}

}  // namespace assay
