#include "tune/model_identity.h"

#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "base/file.h"
#include "modelfile/checkpoint.h"

namespace assay {
namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    const auto extension = entry.path().extension();
    if (entry.is_regular_file() && (extension == ".safetensors" || extension == ".json")) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

Result<ModelIdentity> identify_model(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
  ModelIdentity identity{.path = std::filesystem::absolute(path).string(),
                         .architecture = std::string(checkpoint.architecture()),
                         .file_bytes = 0,
                         .hash = {}};
  uint64_t hash = 0;
  for (const auto& file : files_of(path)) {
    ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::open(file));
    hash = XXH64(mapped.bytes().data(), mapped.bytes().size(), hash);
    identity.file_bytes += mapped.bytes().size();
  }
  identity.hash = fmt::format("{:016x}", hash);
  return identity;
}

}  // namespace assay
