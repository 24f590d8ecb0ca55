// What submit() refuses because it can never run. Pure.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "engine/engine.h"

namespace assay {

struct RequestLimits {
  int32_t n_vocab = 0;
  int64_t max_context = 0;
};

// The number of tokens, prompt and generated, at which the request ends at the latest. kInvalidArgument names
// the field that is at fault.
Result<int64_t> check_request(const GenerationRequest& request, const RequestLimits& limits);

}  // namespace assay
