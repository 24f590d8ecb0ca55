// Finished candidate measurements on disk, one JSON file each, so that an interrupted run can go on.
// Failure: a file that cannot be read or does not parse counts as absent; writing reports kIo or
// kResourceExhausted.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "records/plan.h"

namespace assay {

class MeasurementStore {
 public:
  static Result<MeasurementStore> open(const std::filesystem::path& folder);

  // `key` is any text that names everything the measurement depends on.
  std::optional<Candidate> find(const std::string& key) const;
  Result<void> keep(const std::string& key, const Candidate& candidate) const;

 private:
  explicit MeasurementStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path file_of(const std::string& key) const;

  std::filesystem::path folder_;
};

}  // namespace assay
