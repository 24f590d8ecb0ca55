// Request bodies from any bytes: no crash, and nothing outside the documented ranges is accepted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "serve/openai_request.h"

namespace {

const assay::ApiLimits kLimits{.n_vocab = 1000};

void check(const assay::GenerationOptions& options, bool may_be_zero) {
  const bool sound = options.n >= 1 && options.n <= kLimits.max_choices && !options.model.empty() &&
                     (options.max_tokens == -1 || options.max_tokens >= (may_be_zero ? 0 : 1)) &&
                     options.stop.size() <= static_cast<size_t>(kLimits.max_stop) &&
                     options.sampling.temperature >= 0 && options.sampling.temperature <= 2 &&
                     options.sampling.top_logprobs >= 0 && options.sampling.top_logprobs <= 20;
  if (!sound) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  if (const auto chat = assay::parse_chat_request(body, kLimits)) check(chat->options, false);
  if (const auto text = assay::parse_completion_request(body, kLimits)) check(text->options, true);  // 0 tokens: the prompt echoed alone
  return 0;
}
