#include "cli/subprocess.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace assay {
namespace {

constexpr size_t kKeptOutput = 16384;

struct SpawnActions {
  posix_spawn_file_actions_t value;
  SpawnActions() { ::posix_spawn_file_actions_init(&value); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&value); }
};

std::string read_tail(int fd) {
  std::string kept;
  std::array<char, 4096> piece;
  while (true) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return kept;
    kept.append(piece.data(), static_cast<size_t>(got));
    if (kept.size() > 2 * kKeptOutput) kept.erase(0, kept.size() - kKeptOutput);
  }
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<ProcessOutcome> run_program(const std::vector<std::string>& arguments, bool show_output) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(ErrorCode::kIo, arguments[0], "cannot make a pipe: {}", std::strerror(errno));
  }
  SpawnActions actions;
  ::posix_spawn_file_actions_addopen(&actions.value, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  const int target = show_output ? STDERR_FILENO : ends[1];
  ::posix_spawn_file_actions_adddup2(&actions.value, target, STDOUT_FILENO);
  if (!show_output) ::posix_spawn_file_actions_adddup2(&actions.value, target, STDERR_FILENO);
  pid_t pid = 0;
  const int code = ::posix_spawnp(&pid, argv[0], &actions.value, nullptr, argv.data(), environ);
  ::close(ends[1]);
  if (code != 0) {
    ::close(ends[0]);
    return fail(code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, arguments[0], "cannot start it: {}",
                std::strerror(code));
  }
  ProcessOutcome outcome;
  outcome.output = read_tail(ends[0]);
  ::close(ends[0]);
  outcome.exit_code = wait_for(pid);
  return outcome;
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  const size_t start = text.find_last_of('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1,
                     end - (start == std::string::npos ? -1 : start));
}

}  // namespace assay
