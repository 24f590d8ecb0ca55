// Request bodies from any bytes: no crash, and nothing outside the documented ranges is accepted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "serve/embedding_request.h"
#include "serve/openai_request.h"
#include "serve/token_request.h"

namespace {

const assay::ApiLimits kLimits{.n_vocab = 1000};

void check(const assay::GenerationOptions& options, int64_t least_tokens) {
  const bool sound = options.n >= 1 && options.n <= kLimits.max_choices && !options.model.empty() &&
                     (options.max_tokens == -1 || options.max_tokens >= least_tokens) &&
                     options.stop.size() <= static_cast<size_t>(kLimits.max_stop) &&
                     options.sampling.temperature >= 0 && options.sampling.temperature <= 2 &&
                     options.sampling.top_logprobs >= 0 && options.sampling.top_logprobs <= 20;
  if (!sound) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  if (const auto chat = assay::parse_chat_request(body, kLimits)) check(chat->options, 1);
  if (const auto text = assay::parse_completion_request(body, kLimits))
    check(text->options, text->echo ? 0 : 1);
  constexpr int kDimensions = 4;
  if (const auto made = assay::parse_embedding_request(body, kLimits, kDimensions)) {
    if (made->inputs.empty() || made->model.empty()) std::abort();
  }
  if (const auto made = assay::parse_tokenize_request(body, kLimits)) {
    if (!made->prompt.empty() && !made->messages.empty()) std::abort();
  }
  if (const auto made = assay::parse_detokenize_request(body, kLimits)) {
    for (const int32_t id : made->tokens)
      if (id < 0 || id >= kLimits.n_vocab) std::abort();
  }
  return 0;
}
