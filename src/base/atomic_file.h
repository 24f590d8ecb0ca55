// A file written in pieces that appears only when it is complete: the bytes go to a temporary file beside the
// target, commit() syncs and renames it. Without commit() the target is untouched and the temporary file is
// removed. Failure: kNotFound (no such folder), kResourceExhausted (disk full), kIo, with the path and the
// system's reason. Not thread safe. A killed process may leave "<target>.XXXXXX" behind, never a half-written
// target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay {

class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::filesystem::path& path);

  AtomicFile() = default;
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  Result<void> write(std::span<const std::byte> bytes);
  Result<void> write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  uint64_t written_bytes() const { return written_bytes_; }

  Result<void> commit();

 private:
  std::filesystem::path path_;
  std::string temporary_;
  int fd_ = -1;
  uint64_t written_bytes_ = 0;
};

}  // namespace assay
