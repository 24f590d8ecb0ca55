// Whole-file reads, read-only mappings and atomic writes.
// Failure: kNotFound or kIo with the path and the system's reason. Thread safety: independent values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay {

// Reads a regular file of at most `limit_bytes` into memory, to its end: files under /proc and /sys too.
// Anything else (a directory, a pipe, a device) is kInvalidArgument, beyond the limit kResourceExhausted.
Result<std::string> read_file(const std::filesystem::path& path, uint64_t limit_bytes = uint64_t{1} << 30);

// Writes beside the target, syncs, then renames: readers see the old or the new file, never half of one.
// A full disk leaves the old file untouched. The mode of an existing file is kept, a new one gets 0644; a
// symbolic link is written through.
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view content);

// A read-only mapping of a regular file; unmapped by the destructor. An empty file maps to an empty span.
// Whoever shortens the file while it is mapped takes pages away: reading them raises SIGBUS.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// ~/.cache/assay, or $ASSAY_HOME when it is set. Models lie in its "models" folder. Not created here.
std::filesystem::path assay_home();

}  // namespace assay
