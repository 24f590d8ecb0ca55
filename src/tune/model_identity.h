// Which checkpoint a plan was made for.
#pragma once

#include <filesystem>

#include "base/error.h"
#include "records/plan.h"

namespace assay {

// Reads the whole file (or every file of a checkpoint directory, by name) for its hash: memory speed when
// cached.
Result<ModelIdentity> identify_model(const std::filesystem::path& path);

}  // namespace assay
