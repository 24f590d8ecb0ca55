#include "telemetry/line_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace assay {
namespace {

constexpr mode_t kLogMode = 0640;  // who asked what, and when: not for everybody

Result<int> open_for_append(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, kLogMode);
  if (file >= 0) return file;
  return fail(ErrorCode::kIo, path, "cannot be opened for writing: {}", std::strerror(errno));
}

class ThreadedLineLog final : public LineLog {
 public:
  ThreadedLineLog(LineLogConfig config, int file) : config_(std::move(config)), file_(file) {
    thread_ = std::thread([this] { work(); });
  }
  ~ThreadedLineLog() override {
    {
      const std::scoped_lock lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
    if (file_ != STDOUT_FILENO) ::close(file_);
  }

  bool write(std::string line) override {
    {
      const std::scoped_lock lock(mutex_);
      if (queue_.size() + line.size() + 1 > config_.max_queued_bytes) {
        ++dropped_;
        return false;
      }
      queue_ += line;
      queue_ += '\n';
    }
    changed_.notify_all();
    return true;
  }

  void reopen() override {
    const std::scoped_lock lock(mutex_);
    reopen_ = true;
  }

  void flush() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.empty() && !writing_; });
  }

  int64_t dropped_lines() const override {
    const std::scoped_lock lock(mutex_);
    return dropped_;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const std::string batch = std::exchange(queue_, {});
      const bool reopening = std::exchange(reopen_, false);
      writing_ = true;
      lock.unlock();
      if (reopening) open_anew();
      const size_t left = write_all(batch);
      lock.lock();
      dropped_ += std::count(batch.end() - static_cast<std::ptrdiff_t>(left), batch.end(), '\n');
      writing_ = false;
      changed_.notify_all();
    }
  }

  void open_anew() {
    if (file_ == STDOUT_FILENO) return;
    const Result<int> opened = open_for_append(config_.path);
    if (!opened) return report(opened.error().message() + "; lines go on to the old file");
    ::close(file_);
    file_ = *opened;
    torn_ = false;
  }

  // Returns how many bytes at the end could not be written.
  size_t write_all(std::string_view bytes) {
    if (torn_ && put("\n") == 1) torn_ = false;
    if (torn_) return bytes.size();
    const size_t written = put(bytes);
    torn_ = written < bytes.size() && written > 0 && bytes[written - 1] != '\n';
    if (written == bytes.size() && std::exchange(failing_, false)) report("lines are written again");
    return bytes.size() - written;
  }

  // Returns how many bytes were written.
  size_t put(std::string_view bytes) {
    size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t n = ::write(file_, bytes.data() + written, bytes.size() - written);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        const std::string reason = n < 0 ? std::strerror(errno) : "nothing was written";
        if (!std::exchange(failing_, true)) report("cannot write: " + reason + "; lines are dropped");
        break;
      }
      written += static_cast<size_t>(n);
    }
    return written;
  }

  void report(const std::string& sentence) const {
    if (config_.on_trouble) config_.on_trouble(config_.path + ": " + sentence);
  }

  const LineLogConfig config_;
  int file_;  // the thread's, as the next two
  bool failing_ = false;
  bool torn_ = false;  // the file ends inside a line
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string queue_;
  bool reopen_ = false;
  bool writing_ = false;
  bool closing_ = false;
  int64_t dropped_ = 0;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<LineLog>> LineLog::open(LineLogConfig config) {
  int file = STDOUT_FILENO;
  if (config.path != "-") {
    ASSIGN_OR_RETURN(file, open_for_append(config.path));
  }
  return std::make_unique<ThreadedLineLog>(std::move(config), file);
}

}  // namespace assay
