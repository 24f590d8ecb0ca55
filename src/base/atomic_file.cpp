#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace assay {
namespace {

std::unexpected<Error> system_error(const std::filesystem::path& path, std::string_view action, int code) {
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  const ErrorCode kind = code == ENOENT ? ErrorCode::kNotFound
                         : full         ? ErrorCode::kResourceExhausted
                                        : ErrorCode::kIo;
  return fail(kind, path.string(), "cannot {}: {}", action, std::strerror(code));
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& path) {
  AtomicFile file;
  file.path_ = path;
  std::string temporary = path.string() + ".XXXXXX";
  file.fd_ = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (file.fd_ < 0) return system_error(path, "create a file beside it", errno);
  file.temporary_ = std::move(temporary);
  ::fchmod(file.fd_, 0644);
  return file;
}

Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
  CHECK(fd_ >= 0);
  // Linux writes at most 2^31 bytes at once.
  constexpr size_t kPiece = size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kPiece));
    if (written < 0) {
      if (errno == EINTR) continue;
      return system_error(path_, "write", errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
    written_bytes_ += static_cast<uint64_t>(written);
  }
  return {};
}

Result<void> AtomicFile::commit() {
  CHECK(fd_ >= 0);
  if (::fsync(fd_) != 0) return system_error(path_, "sync", errno);
  // Network file systems report a full disk only here.
  if (::close(std::exchange(fd_, -1)) != 0) return system_error(path_, "close", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return system_error(path_, "replace", errno);
  temporary_.clear();
  return {};
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      written_bytes_(other.written_bytes_) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  std::swap(written_bytes_, other.written_bytes_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

}  // namespace assay
