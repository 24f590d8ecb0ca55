// From sampled tokens of one sequence to the events its sink sees: decoding to UTF-8, stop strings, the end.
// Ownership: shares the sink, borrows the tokenizer. Thread safety: the step thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/sampler.h"
#include "engine/stop_matcher.h"
#include "tokenizer/tokenizer.h"

namespace assay {

class TokenStream {
 public:
  // The last prompt token tells the decoder that the text goes on (a leading space is then part of the
  // answer).
  TokenStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt, std::vector<std::string> stops,
              bool keep_special, std::shared_ptr<StreamSink> sink);

  void deliver_prompt(std::span<const PromptTokenLogprob> tokens) { sink_->on_prompt(tokens); }
  // Delivers one event. True when its text completed a stop string: the sequence ends here.
  bool deliver(SampledToken token);
  // Delivers the completion, exactly once. Fills in trailing_text and stop_text; a text that only now turns
  // out to hold a stop string changes the reason to kStop.
  void finish(Completion completion);

 private:
  StreamDecoder decoder_;
  StopMatcher stops_;
  std::shared_ptr<StreamSink> sink_;
};

}  // namespace assay
