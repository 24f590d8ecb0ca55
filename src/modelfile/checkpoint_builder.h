// How the readers hand a parsed container to Checkpoint. Internal to modelfile.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "modelfile/checkpoint.h"
#include "modelfile/metadata.h"

namespace assay {

struct CheckpointParts {
  std::filesystem::path path;
  std::string container;
  bool rope_halves = false;
  std::vector<MappedFile> files;  // keep the tensors' bytes alive
  std::vector<Tensor> tensors;    // distinct names
  modelfile_internal::Metadata metadata;
  std::vector<std::string> warnings;
  std::function<Result<VocabSpec>(const modelfile_internal::Metadata&)> read_vocab;
};

struct CheckpointBuilder {
  // kCorrupt without general.architecture.
  static Result<Checkpoint> build(CheckpointParts parts);
};

namespace modelfile_internal {
// One per container. `file` is already mapped.
Result<Checkpoint> open_gguf(const std::filesystem::path& path, MappedFile file);
}  // namespace modelfile_internal

}  // namespace assay
