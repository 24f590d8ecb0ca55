// The body of POST /v1/embeddings. Source: OpenAI API reference (embeddings); `pooling` is assay's own. Pure.
// Failure: ApiError, status 400.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/prompt_output.h"
#include "serve/openai_request.h"

namespace assay {

struct EmbeddingRequest {
  std::string model;
  std::vector<PromptInput> inputs;
  bool base64 = false;  // the numbers as little-endian f32 in base64
  Pooling pooling = Pooling::kMean;
  std::optional<int> priority;
};

// `dimensions`: how long the model's vectors are; a request that names another length is refused.
ApiResult<EmbeddingRequest> parse_embedding_request(std::string_view body, const ApiLimits& limits,
                                                    int dimensions);

}  // namespace assay
