#include "cli/serve_signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace assay {
namespace {

// What the handler may touch: lock-free atomics and write().
std::atomic<int> write_end{-1};
std::atomic<int> seen{0};
std::atomic<bool> hup_waits{false};
struct sigaction previous_int;
struct sigaction previous_term;
struct sigaction previous_hup;

void on_signal(int number) {
  const int saved_errno = errno;
  if (number == SIGHUP && hup_waits.exchange(true)) return;  // one is enough; the pipe must never be full
  if (number != SIGHUP && seen.fetch_add(1) > 0) ::_exit(128 + number);
  const auto byte = static_cast<char>(number);
  [[maybe_unused]] const ssize_t n = ::write(write_end.load(), &byte, 1);
  errno = saved_errno;
}

}  // namespace

Result<ServeSignals> ServeSignals::install() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::kIo, "signals", "cannot make a pipe: {}", std::strerror(errno));
  }
  write_end = ends[1];
  seen = 0;
  hup_waits = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &previous_int);
  ::sigaction(SIGTERM, &action, &previous_term);
  ::sigaction(SIGHUP, &action, &previous_hup);
  return ServeSignals(ends[0]);
}

ServeSignals::ServeSignals(ServeSignals&& other) noexcept : read_end_(std::exchange(other.read_end_, -1)) {}

ServeSignals::~ServeSignals() {
  if (read_end_ < 0) return;
  ::sigaction(SIGINT, &previous_int, nullptr);
  ::sigaction(SIGTERM, &previous_term, nullptr);
  ::sigaction(SIGHUP, &previous_hup, nullptr);
  ::close(write_end.exchange(-1));
  ::close(read_end_);
}

int ServeSignals::wait() const {
  char byte = 0;
  while (::read(read_end_, &byte, 1) < 0 && errno == EINTR) {
  }
  if (byte == SIGHUP) hup_waits = false;
  return byte;
}

}  // namespace assay
