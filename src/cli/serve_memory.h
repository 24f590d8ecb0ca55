// Whether a model can fit at all, before anything is loaded. Failure: kResourceExhausted with the sum and by how much
// it is too large. Cost: reads the checkpoint's head.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "numeric/precision.h"

namespace assay {

// No less than this many bytes of weights: what the file holds, or its matrices at the precision's format.
Result<uint64_t> least_weight_bytes(const std::filesystem::path& path, const Precision& precision);

// `kv_bytes`: what was asked for; 0: as much as is left.
Result<void> check_memory(uint64_t weight_bytes, uint64_t kv_bytes, uint64_t available_bytes);

}  // namespace assay
