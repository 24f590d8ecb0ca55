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

constexpr size_t kReadAhead = 4096;  // room to see the end of a file whose size is known

// Closes on scope exit.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

ErrorCode kind_of(int code) {
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return ErrorCode::kResourceExhausted;
    default:
      return ErrorCode::kIo;
  }
}

std::unexpected<Error> system_error(const std::filesystem::path& path, std::string_view action) {
  const int code = errno;
  return fail(kind_of(code), path.string(), "cannot {}: {}", action, std::strerror(code));
}

// Without blocking, so that a named pipe is refused instead of waited for.
int open_to_read(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
    if (written == 0) return fail(ErrorCode::kIo, path.string(), "cannot write: no progress");
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(fd) != 0) return system_error(path, "sync");
  return {};
}

std::unexpected<Error> too_large(const std::filesystem::path& path, uint64_t bytes, uint64_t limit_bytes) {
  return fail(ErrorCode::kResourceExhausted, path.string(), "has {} bytes or more, the limit is {}", bytes,
              limit_bytes);
}

// The mode of the file that is replaced, or what a new file gets here.
mode_t mode_for(const std::filesystem::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) return info.st_mode & 07777;
  return 0644;
}

// A symbolic link is written through, not replaced.
std::filesystem::path behind_links(const std::filesystem::path& path) {
  std::error_code ignored;
  auto real = std::filesystem::canonical(path, ignored);
  return ignored ? path : real;
}

// The rename itself must survive a power loss. A file system that cannot sync directories is no failure.
void sync_directory(const std::filesystem::path& path) {
  const auto directory = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const Descriptor folder{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder.fd >= 0) ::fsync(folder.fd);
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, uint64_t limit_bytes) {
  const Descriptor file{open_to_read(path)};
  if (file.fd < 0) return system_error(path, "open");
  ASSIGN_OR_RETURN(const uint64_t size, regular_size(path, file.fd));
  if (size > limit_bytes) {
    return too_large(path, size, limit_bytes);
  }
  // To the end, whatever the size said: files under /proc say 0, and a file may grow while it is read.
  std::string content(size + kReadAhead, '\0');
  size_t done = 0;
  for (;;) {
    if (done == content.size()) content.resize(2 * content.size());
    const ssize_t got = ::read(file.fd, content.data() + done, content.size() - done);
    if (got < 0) {
      if (errno == EINTR) continue;
      return system_error(path, "read");
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
    if (done > limit_bytes) return too_large(path, done, limit_bytes);
  }
  content.resize(done);
  return content;
}

Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path target = behind_links(path);
  std::string temporary = target.string() + ".XXXXXX";
  const Descriptor file{::mkostemp(temporary.data(), O_CLOEXEC)};
  if (file.fd < 0) return system_error(path, "create a file beside it");
  ::fchmod(file.fd, mode_for(target));
  if (auto written = write_all(path, file.fd, content); !written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    auto error = system_error(path, "replace");
    ::unlink(temporary.c_str());
    return error;
  }
  sync_directory(target);
  return {};
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file{open_to_read(path)};
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
