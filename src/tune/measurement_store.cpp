#include "tune/measurement_store.h"

#include <xxhash.h>

#include <system_error>

#include "base/file.h"
#include "records/json_codec.h"

namespace assay {

Result<MeasurementStore> MeasurementStore::open(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder)) {
    return fail(ErrorCode::kIo, folder.string(), "cannot create this folder: {}",
                error ? error.message() : "a file is in its place");
  }
  return MeasurementStore(folder);
}

std::filesystem::path MeasurementStore::file_of(const std::string& key) const {
  return folder_ / fmt::format("{:016x}.json", XXH64(key.data(), key.size(), 0));
}

std::optional<Candidate> MeasurementStore::find(const std::string& key) const {
  const auto path = file_of(key);
  const auto text = read_file(path, uint64_t{16} << 20);
  if (!text) return std::nullopt;
  auto candidate = record_from_json<Candidate>(*text, path.string());
  if (!candidate) return std::nullopt;
  return std::move(*candidate);
}

Result<void> MeasurementStore::keep(const std::string& key, const Candidate& candidate) const {
  return write_file_atomically(file_of(key), record_to_json(candidate));
}

}  // namespace assay
