#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace assay {
namespace {

// Closes on scope exit.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::unexpected<Error> system_error(const std::filesystem::path& path, std::string_view action) {
  const int code = errno;
  const ErrorCode kind = code == ENOENT                     ? ErrorCode::kNotFound
                         : code == ENOSPC || code == EDQUOT ? ErrorCode::kResourceExhausted
                                                            : ErrorCode::kIo;
  return fail(kind, path.string(), "cannot {}: {}", action, std::strerror(code));
}

Result<uint64_t> regular_size(const std::filesystem::path& path, int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return system_error(path, "stat");
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, path.string(), "is not a regular file");
  }
  return static_cast<uint64_t>(info.st_size);
}

Result<void> write_all(const std::filesystem::path& path, int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return system_error(path, "write");
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(fd) != 0) return system_error(path, "sync");
  return {};
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, uint64_t limit_bytes) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return system_error(path, "open");
  ASSIGN_OR_RETURN(const uint64_t size, regular_size(path, file.fd));
  if (size > limit_bytes) {
    return fail(ErrorCode::kResourceExhausted, path.string(), "is {} bytes, more than the limit of {}", size,
                limit_bytes);
  }
  std::string content(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.fd, content.data() + done, size - done);
    if (got < 0) {
      if (errno == EINTR) continue;
      return system_error(path, "read");
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  content.resize(done);
  return content;
}

Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  std::string temporary = path.string() + ".XXXXXX";
  Descriptor file{::mkstemp(temporary.data())};
  if (file.fd < 0) return system_error(path, "create a file beside it");
  ::fchmod(file.fd, 0644);
  if (auto written = write_all(path, file.fd, content); !written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    auto error = system_error(path, "replace");
    ::unlink(temporary.c_str());
    return error;
  }
  return {};
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return system_error(path, "open");
  ASSIGN_OR_RETURN(const uint64_t size, regular_size(path, file.fd));
  MappedFile mapped;
  mapped.path_ = path;
  if (size == 0) return mapped;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) return system_error(path, "map");
  mapped.data_ = static_cast<const std::byte*>(address);
  mapped.size_ = size;
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::filesystem::path assay_home() {
  if (const char* home = std::getenv("ASSAY_HOME"); home != nullptr && *home != '\0') return home;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return std::filesystem::path(home) / ".cache" / "assay";
  }
  return std::filesystem::path(".assay");
}

}  // namespace assay
