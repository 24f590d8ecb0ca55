// Opens safetensors checkpoints: a file, a folder, or an index of shards, with config.json beside them.
// Internal to modelfile; Checkpoint::open() is the public face. Failure: as Checkpoint::open().
#pragma once

#include <filesystem>

#include "base/error.h"
#include "modelfile/checkpoint.h"

namespace assay::modelfile_internal {

// A folder with config.json and *.safetensors.
Result<Checkpoint> open_folder(const std::filesystem::path& folder);
// One .safetensors file with config.json beside it, or a model.safetensors.index.json.
Result<Checkpoint> open_safetensors_file(const std::filesystem::path& path);

}  // namespace assay::modelfile_internal
