#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "base/units.h"
#include "cli/pull.h"
#include "cli/sha256.h"
#include "http/client.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 5;

std::optional<uint64_t> parse_number(std::optional<std::string_view> text) {
  uint64_t value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

// Without quotes and the weak mark: W/"abc" -> abc.
std::string bare_etag(std::optional<std::string_view> etag) {
  std::string text(etag.value_or(""));
  if (text.starts_with("W/")) text.erase(0, 2);
  std::erase(text, '"');
  return text;
}

// What the server says about the file before it is fetched.
struct Announcement {
  std::optional<uint64_t> bytes;
  std::string etag;
  std::string sha256;  // empty when it announces none
};

std::unexpected<Error> refused(const std::string& url, int status) {
  if (status == 401 || status == 403) {
    return fail(ErrorCode::kUnavailable, url,
                "the server refuses it ({}): a private or gated model, or no such one", status);
  }
  if (status == 404) return fail(ErrorCode::kNotFound, url, "the server has no such file (404)");
  return fail(ErrorCode::kNetwork, url, "the server answered with status {}", status);
}

Result<Announcement> ask(const std::string& url) {
  FetchRequest request{.url = url, .method = "HEAD", .idle_timeout_seconds = 30, .max_redirects = 0};
  request.headers.add("Accept-Encoding", "identity");
  // The hash and size are on the first answer; the storage behind the redirect does not know them.
  ASSIGN_OR_RETURN(FetchResponse response, fetch(request));
  const bool linked = response.headers.find("X-Linked-Etag").has_value();
  if (response.status >= 300 && response.status < 400 && !linked) {
    request.max_redirects = 5;
    ASSIGN_OR_RETURN(response, fetch(request));
  }
  if (response.status >= 400) return refused(url, response.status);
  Announcement announcement;
  announcement.etag = bare_etag(response.headers.find(linked ? "X-Linked-Etag" : "ETag"));
  announcement.bytes = parse_number(response.headers.find("X-Linked-Size"));
  if (!announcement.bytes && response.status == 200) {
    announcement.bytes = parse_number(response.headers.find("Content-Length"));
  }
  if (const auto digest = parse_sha256(announcement.etag); linked && digest) announcement.sha256 = *digest;
  return announcement;
}

// Characters that stand for themselves in a path (RFC 3986).
std::string escape_path(std::string_view path) {
  std::string escaped;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    if (plain) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

// The partial file: what has arrived so far of one version of the file.
class PartialFile {
 public:
  explicit PartialFile(fs::path path) : path_(std::move(path)) {}
  ~PartialFile() { close(); }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const fs::path& path() const { return path_; }
  uint64_t bytes() const {
    std::error_code missing;
    const auto size = fs::file_size(path_, missing);
    return missing ? 0 : size;
  }
  Result<void> open(bool restart) {
    close();
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (restart ? O_TRUNC : O_APPEND), 0644);
    if (fd_ < 0) return failure("open");
    return {};
  }
  Result<void> write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failure("write");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return {};
  }
  Result<void> sync() {
    if (fd_ >= 0 && ::fsync(fd_) != 0) return failure("sync");
    close();
    return {};
  }
  void remove() {
    close();
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

 private:
  std::unexpected<Error> failure(std::string_view action) const {
    const int code = errno;
    const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
    return fail(full ? ErrorCode::kResourceExhausted : ErrorCode::kIo, path_.string(), "cannot {}: {}{}",
                action, std::strerror(code), full ? "; free some space and pull again, it resumes" : "");
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  fs::path path_;
  int fd_ = -1;
};

class Download {
 public:
  Download(std::string url, const Announcement& announced, PartialFile& partial, const PullProgress& progress)
      : url_(std::move(url)), announced_(announced), partial_(partial), progress_(progress) {}

  Result<void> run() {
    int attempts = 0;
    while (!complete()) {
      const uint64_t before = partial_.bytes();
      const auto tried = attempt();
      if (disk_error_) return std::unexpected(*disk_error_);
      if (tried && (complete() || !announced_.bytes)) break;
      if (!tried && !may_retry(tried.error())) return std::unexpected(tried.error());
      // An attempt that brought something does not count against the limit.
      attempts = partial_.bytes() > before ? 0 : attempts + 1;
      if (attempts >= kAttempts) {
        if (!tried) return std::unexpected(tried.error());
        return fail(ErrorCode::kNetwork, url_, "expected {} bytes, received {}", announced_.bytes.value_or(0),
                    partial_.bytes());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100 << attempts));
    }
    return partial_.sync();
  }

 private:
  bool complete() const { return announced_.bytes && partial_.bytes() == *announced_.bytes; }
  static bool may_retry(const Error& error) {
    return error.code == ErrorCode::kNetwork || error.code == ErrorCode::kUnavailable;
  }

  Result<void> attempt();
  bool accept_head(const ResponseHead& head, uint64_t start);

  std::string url_;
  const Announcement& announced_;
  PartialFile& partial_;
  const PullProgress& progress_;
  std::optional<Error> disk_error_;
  uint64_t done_ = 0;
  int status_ = 0;
};

// 206 continues the partial file, 200 starts over; everything else has no file in its body.
bool Download::accept_head(const ResponseHead& head, uint64_t start) {
  status_ = head.status;
  if (head.status != 200 && head.status != 206) return false;
  const std::string expected = fmt::format("bytes {}-", start);
  const bool continues =
      head.status == 206 && head.headers.find("Content-Range").value_or("").starts_with(expected);
  if (head.status == 206 && !continues) return false;
  done_ = continues ? start : 0;
  if (auto opened = partial_.open(!continues); !opened) {
    disk_error_ = opened.error();
    return false;
  }
  return true;
}

Result<void> Download::attempt() {
  const uint64_t start = announced_.bytes && partial_.bytes() < *announced_.bytes ? partial_.bytes() : 0;
  FetchRequest request{.url = url_, .idle_timeout_seconds = 30, .max_body_bytes = UINT64_MAX / 2};
  request.headers.add("Accept-Encoding", "identity");
  if (start > 0) request.headers.add("Range", fmt::format("bytes={}-", start));
  FetchCallbacks callbacks;
  callbacks.on_head = [&](const ResponseHead& head) { return accept_head(head, start); };
  callbacks.on_body = [&](std::string_view bytes) {
    if (auto written = partial_.write(bytes); !written) {
      disk_error_ = written.error();
      return false;
    }
    done_ += bytes.size();
    if (progress_) progress_(done_, announced_.bytes.value_or(0));
    return true;
  };
  status_ = 0;
  auto response = fetch(request, callbacks);
  if (response || disk_error_) return {};
  if (response.error().code != ErrorCode::kCancelled) return std::unexpected(response.error());
  // Stopped here: the disk (reported by the caller), or an answer without the file.
  if (status_ == 206 || status_ == 416) {
    partial_.remove();
    return fail(ErrorCode::kNetwork, url_, "the server cannot continue the download ({})", status_);
  }
  if (status_ >= 500) return fail(ErrorCode::kNetwork, url_, "the server answered with status {}", status_);
  auto error = refused(url_, status_);
  error.error().code = ErrorCode::kNotFound;  // asking again does not help
  return error;
}

// Is the target there, with what the server announces?
Result<std::optional<PullOutcome>> present(const fs::path& target, const Announcement& announced,
                                           const std::string& wanted) {
  std::error_code missing;
  const auto size = fs::file_size(target, missing);
  if (missing || (announced.bytes && size != *announced.bytes)) return std::nullopt;
  if (wanted.empty()) return PullOutcome{target, true, ""};
  ASSIGN_OR_RETURN(const std::string digest, sha256_of_file(target));
  if (digest != wanted) return std::nullopt;
  return PullOutcome{target, true, digest};
}

Result<PullOutcome> finish(PartialFile& partial, const fs::path& target, const std::string& wanted) {
  ASSIGN_OR_RETURN(const std::string digest, sha256_of_file(partial.path()));
  if (!wanted.empty() && digest != wanted) {
    partial.remove();
    return fail(ErrorCode::kCorrupt, target.filename().string(),
                "expected SHA-256 {}, found {}; the download was removed", wanted, digest);
  }
  std::error_code error;
  fs::rename(partial.path(), target, error);
  if (error)
    return fail(ErrorCode::kIo, target.string(), "cannot move the download there: {}", error.message());
  return PullOutcome{target, false, digest};
}

}  // namespace

Result<HfFile> parse_hf_file(std::string_view text) {
  const std::string whole(text);
  const auto bad = [&] {
    return fail(ErrorCode::kInvalidArgument, whole, "expected hf:<org>/<repo>/<file>");
  };
  if (!text.starts_with("hf:")) return bad();
  text.remove_prefix(3);
  const size_t first = text.find('/');
  const size_t second = first == std::string_view::npos ? first : text.find('/', first + 1);
  if (second == std::string_view::npos) return bad();
  HfFile file{std::string(text.substr(0, second)), std::string(text.substr(second + 1))};
  for (const char c : file.repository) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
    if (!plain) return bad();
  }
  if (first == 0 || second == first + 1) return bad();
  for (const fs::path& part : fs::path(file.file)) {
    if (part.empty() || part == "." || part == ".." || part == "/") return bad();
  }
  if (file.file.empty()) return bad();
  return file;
}

Result<PullOutcome> pull_hf_file(const HfFile& file, const std::string& endpoint, const fs::path& folder,
                                 const std::string& sha256, const PullProgress& progress) {
  const std::string url =
      fmt::format("{}/{}/resolve/main/{}", endpoint, file.repository, escape_path(file.file));
  const fs::path target = folder / fs::path(file.file).filename();
  ASSIGN_OR_RETURN(const Announcement announced, ask(url));
  const std::string wanted = sha256.empty() ? announced.sha256 : sha256;
  ASSIGN_OR_RETURN(auto already, present(target, announced, wanted));
  if (already) return *already;
  // Named after the version, so that pieces of two versions never meet in one file.
  Sha256 version;
  version.update(url + "\n" + announced.etag);
  PartialFile partial(
      folder / fmt::format(".{}.{}.partial", target.filename().string(), version.finish().substr(0, 12)));
  if (announced.bytes) {
    if (partial.bytes() > *announced.bytes) partial.remove();
    RETURN_IF_ERROR(check_room(folder, *announced.bytes - partial.bytes()));
  }
  RETURN_IF_ERROR(Download(url, announced, partial, progress).run());
  return finish(partial, target, wanted);
}

}  // namespace assay
