// Calibrated weights on disk, one file each, so that a model is calibrated once per method and text.
//
// A file is written whole or not at all and carries a checksum; one that is damaged, of another version or of
// another key counts as absent. Failure: writing reports kIo or kResourceExhausted. Thread safety: any number of
// processes may read and write one folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "model/calibration.h"

namespace assay {

class CalibratedStore {
 public:
  static Result<CalibratedStore> open(const std::filesystem::path& folder);  // created when missing

  // `key` is any text that names everything the weights depend on.
  std::optional<CalibratedWeights> find(const std::string& key) const;
  Result<void> keep(const std::string& key, const CalibratedWeights& weights) const;
  std::filesystem::path file_of(const std::string& key) const;

 private:
  explicit CalibratedStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

}  // namespace assay
