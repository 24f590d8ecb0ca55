#include "cli/serve_memory.h"

#include "base/units.h"
#include "modelfile/checkpoint.h"

namespace assay {

Result<uint64_t> least_weight_bytes(const std::filesystem::path& path, const Precision& precision) {
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
  const WeightFormat& weights = precision.weights;
  // Where layers differ or zeros are left out, the account after loading has to do.
  const bool uniform = precision.exemptions.empty() && weights.sparsity == Sparsity::kNone;
  uint64_t bytes = 0;
  for (const Tensor& tensor : checkpoint.tensors()) {
    if (weights.as_shipped) {
      bytes += tensor.data.size();
    } else if (uniform && tensor.shape.size() >= 2 && tensor.name.starts_with("blk.")) {
      bytes += static_cast<uint64_t>(tensor.n_values()) * static_cast<uint64_t>(bits(weights.format)) / 8;
    }
  }
  return bytes;
}

Result<void> check_memory(uint64_t weight_bytes, uint64_t kv_bytes, uint64_t available_bytes) {
  const uint64_t needed = weight_bytes + kv_bytes;
  if (needed >= weight_bytes && needed <= available_bytes) return {};
  return fail(ErrorCode::kResourceExhausted, "memory",
              "does not fit: weights take at least {}, the KV cache {}, {} are available: {} too much",
              format_bytes(weight_bytes), kv_bytes == 0 ? "at least a little" : format_bytes(kv_bytes),
              format_bytes(available_bytes),
              format_bytes(needed < weight_bytes ? UINT64_MAX : needed - available_bytes));
}

}  // namespace assay
