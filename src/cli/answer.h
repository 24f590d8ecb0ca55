// One answer, waited for on the calling thread, with its text shown as it comes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/interrupt.h"
#include "engine/engine.h"

namespace assay {

struct Answer {
  std::vector<TokenEvent> tokens;
  std::string text;
  Completion completion;
  double ttft_seconds = 0;   // from submission to the first token
  double total_seconds = 0;  // from submission to the end

  // Prompt tokens that were computed, over the time to the first token; 0 when nothing was.
  double prefill_tokens_per_second() const;
  // After the first token; 0 for answers of one token.
  double decode_tokens_per_second() const;
};

// Ctrl-C ends the answer with FinishReason::kCancelled; the flag stays raised. `show` gets text on the
// engine's thread, one piece at a time.
Result<Answer> answer(Engine& engine, GenerationRequest request, const InterruptFlag& interrupt,
                      std::function<void(std::string_view)> show);

// "stop", "length", "cancelled", "error".
std::string_view name(FinishReason reason);

// "41 tokens, 83 ms to the first, prefill 612 tokens/s, decode 71.2 tokens/s".
std::string describe_timings(const Answer& answer);

}  // namespace assay
