// Runs another engine's bench program and watches its memory. Header only.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"

namespace assay::bench {

struct ProcessMemory {
  double resident_bytes = 0;  // now
  double peak_bytes = 0;
};

// From /proc/<pid>/status; zeros once the process has ended.
inline ProcessMemory memory_of(const std::string& pid) {
  ProcessMemory memory;
  std::ifstream status("/proc/" + pid + "/status");
  for (std::string line; std::getline(status, line);) {
    const double bytes = 1024 * std::atof(line.substr(std::min<size_t>(line.size(), 7)).c_str());
    if (line.starts_with("VmRSS:")) memory.resident_bytes = bytes;
    if (line.starts_with("VmHWM:")) memory.peak_bytes = bytes;
  }
  return memory;
}

struct Output {
  std::string text;      // stdout
  ProcessMemory memory;  // as seen last before it ended
};

// kNotFound when the program cannot be started, kInternal when it ends with another code than 0. Looks at
// its memory 20 times a second. Errors go to nowhere: engines chat there.
inline Result<Output> run_program(const std::vector<std::string>& words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(ErrorCode::kIo, words[0], "no pipe");
  const pid_t child = ::fork();
  if (child < 0) return fail(ErrorCode::kIo, words[0], "no process");
  if (child == 0) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int nowhere = ::open("/dev/null", O_RDWR);
    ::dup2(nowhere, STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  Output output;
  for (;;) {
    pollfd ready{ends[0], POLLIN, 0};
    const int n = ::poll(&ready, 1, 50);
    if (const ProcessMemory now = memory_of(std::to_string(child)); now.resident_bytes > 0) output.memory = now;
    if (n < 0 && errno != EINTR) break;
    if (n <= 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t got = ::read(ends[0], buffer.data(), buffer.size());
    if (got <= 0) break;
    output.text.append(buffer.data(), static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) return fail(ErrorCode::kInternal, words[0], "was killed");
  if (WEXITSTATUS(status) == 127) return fail(ErrorCode::kNotFound, words[0], "cannot be started");
  if (WEXITSTATUS(status) != 0)
    return fail(ErrorCode::kInternal, words[0], "ended with code {}", WEXITSTATUS(status));
  return output;
}

}  // namespace assay::bench
