#include "engine/token_stream.h"

#include <utility>

#include "base/check.h"

namespace assay {

TokenStream::TokenStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                         std::vector<std::string> stops, bool keep_special, std::shared_ptr<StreamSink> sink)
    : decoder_(tokenizer, !keep_special), stops_(std::move(stops)), sink_(std::move(sink)) {
  if (!prompt.empty()) decoder_.push(prompt.back());
}

bool TokenStream::deliver(SampledToken token) {
  TokenEvent event;
  event.token = token.token;
  event.text = stops_.push(decoder_.push(token.token));
  event.logprob = token.logprob;
  event.top = std::move(token.top);
  sink_->on_token(event);
  return stops_.matched();
}

void TokenStream::finish(Completion completion) {
  CHECK(sink_ != nullptr);
  completion.trailing_text = stops_.push(decoder_.finish());
  completion.trailing_text += stops_.finish();
  completion.stop_text = stops_.stop_text();
  if (stops_.matched() && completion.reason == FinishReason::kLength) completion.reason = FinishReason::kStop;
  sink_->on_finish(completion);
  sink_.reset();
}

}  // namespace assay
