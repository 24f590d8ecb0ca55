// A server under test as a child process: started, waited for, asked for its memory and its threads' time,
// ended. Header only.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "http/client.h"

namespace assay::bench {

inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

class ServerProcess {
 public:
  // `words` end with what makes the program listen on `port`. kUnavailable when it is not ready in two
  // minutes.
  static Result<ServerProcess> start(std::string name, std::vector<std::string> words, int port) {
    const pid_t child = ::fork();
    if (child < 0) return fail(ErrorCode::kIo, words[0], "no process");
    if (child == 0) {
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      const int nowhere = ::open("/dev/null", O_RDWR);
      for (const int end : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, end);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ServerProcess server(std::move(name), child, port);
    for (int i = 0; i < 600; ++i) {
      if (::waitpid(child, nullptr, WNOHANG) != 0) {
        server.pid_ = -1;
        return fail(ErrorCode::kInternal, words[0], "ended before it was ready");
      }
      const auto health = fetch({.url = server.url("/health"), .total_timeout_seconds = 2});
      if (health && health->status == 200) return server;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    return fail(ErrorCode::kUnavailable, words[0], "not ready after two minutes");
  }

  ServerProcess(ServerProcess&& other) noexcept
      : name_(std::move(other.name_)), pid_(std::exchange(other.pid_, -1)), port_(other.port_) {}
  ServerProcess& operator=(ServerProcess&&) = delete;
  ~ServerProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    for (int i = 0; i < 100 && ::waitpid(pid_, nullptr, WNOHANG) == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (::kill(pid_, 0) == 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  const std::string& name() const { return name_; }
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }

  // The sum of a metric's samples whose line starts with `prefix`, e.g. "assay_steps_total".
  double metric(const std::string& prefix) const {
    const auto answer = fetch({.url = url("/metrics"), .total_timeout_seconds = 10});
    double sum = 0;
    if (!answer) return sum;
    std::istringstream lines(answer->body);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(prefix)) sum += std::atof(line.substr(line.rfind(' ') + 1).c_str());
    return sum;
  }

  // CPU seconds of the threads of that name.
  double thread_seconds(const std::string& thread_name) const {
    double ticks = 0;
    std::error_code ignored;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task", ignored)) {
      std::string name;
      std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
      if (name != thread_name) continue;
      std::string stat;
      std::getline(std::ifstream(task.path() / "stat"), stat);
      std::istringstream fields(stat.substr(stat.rfind(')') + 2));
      std::string word;
      for (int field = 3; field <= 15 && fields >> word; ++field)
        if (field >= 14) ticks += std::atof(word.c_str());
    }
    return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

 private:
  ServerProcess(std::string name, pid_t pid, int port) : name_(std::move(name)), pid_(pid), port_(port) {}

  std::string name_;
  pid_t pid_;
  int port_;
};

}  // namespace assay::bench
