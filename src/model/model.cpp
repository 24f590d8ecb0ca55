#include "model/model.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "model/calibration.h"
#include "model/llama_model.h"
#include "model/llama_workspace.h"
#include "model/rope_table.h"
#include "model/weights.h"

namespace assay {
namespace {

constexpr int kMostBatchTokens = 1 << 16;

Result<void> check_precision(const Precision& precision) {
  for (const Format format : {precision.prefill_activations, precision.decode_activations}) {
    if (format != Format::kF32 && format != Format::kBF16 && format != Format::kInt8) {
      return fail(ErrorCode::kUnsupported, "precision", "activations run at f32, bf16 or int8, not {}",
                  name(format));
    }
  }
  return {};
}

Result<int> choose_context(const ModelConfig& config, int wanted) {
  if (wanted < 0 || wanted > config.context_length) {
    return fail(ErrorCode::kInvalidArgument, "max_context",
                "expected 1..{}, the positions {} was trained for, found {}", config.context_length,
                config.name, wanted);
  }
  return wanted == 0 ? config.context_length : wanted;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::load(const Checkpoint& checkpoint, const Precision& precision,
                                           std::shared_ptr<Backend> backend, LoadOptions options) {
  RETURN_IF_ERROR(check_precision(precision));
  if (options.max_batch_tokens < 1 || options.max_batch_tokens > kMostBatchTokens) {
    return fail(ErrorCode::kInvalidArgument, "max_batch_tokens", "expected 1..{}, found {}", kMostBatchTokens,
                options.max_batch_tokens);
  }
  LlamaParts parts;
  ASSIGN_OR_RETURN(parts.config, ModelConfig::read(checkpoint));
  ASSIGN_OR_RETURN(parts.max_context, choose_context(parts.config, options.max_context));
  const int n_threads = backend->n_threads();
  const bool two_groups = precision.prefill_activations != precision.decode_activations;
  const uint64_t step_bytes =
      LlamaWorkspace::bytes_needed(parts.config, options.max_batch_tokens, two_groups) +
      RopeTable::bytes_needed(parts.config, parts.max_context);
  ASSIGN_OR_RETURN(parts.weights, ModelWeights::load(checkpoint, parts.config, precision, n_threads,
                                                     step_bytes, options.progress, options.calibrated.get()));
  ASSIGN_OR_RETURN(parts.rope, RopeTable::create(parts.config, parts.max_context, n_threads));
  parts.precision = precision;
  parts.backend = std::move(backend);
  parts.max_batch_tokens = options.max_batch_tokens;
  return make_llama_model(std::move(parts));
}

}  // namespace assay
