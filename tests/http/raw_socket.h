// A loopback socket for tests that must say exactly what goes over the wire; independent of src/http.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

namespace assay::testing {

struct RawResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
  bool complete = false;
};

class RawSocket {
 public:
  explicit RawSocket(uint16_t port, int receive_buffer_bytes = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer_bytes > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(receive_buffer_bytes));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    const int one = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  }
  ~RawSocket() { close(); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool connected() const { return connected_; }
  int descriptor() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void end_writing() { ::shutdown(fd_, SHUT_WR); }
  // Makes close() send a reset.
  void reset_on_close() {
    const linger option{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &option, sizeof(option));
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  // Reads until `wanted` has been seen or the peer closed or time is over; everything unread so far is kept.
  bool wait_for(std::string_view wanted, double seconds = 10) {
    while (input_.find(wanted) == std::string::npos) {
      if (!fill(seconds)) return false;
    }
    return true;
  }

  // True when the peer has closed (or reset) within the time; what came before is in input().
  bool wait_for_close(double seconds = 10) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!ended_) {
      const std::chrono::duration<double> left = deadline - std::chrono::steady_clock::now();
      if (left.count() <= 0 || (!fill(left.count()) && !ended_)) return false;
    }
    return true;
  }

  // The next response on the connection, by its own length. `head_only`: an answer to HEAD.
  RawResponse read_response(double seconds = 10, bool head_only = false) {
    RawResponse response;
    if (!wait_for("\r\n\r\n", seconds)) return response;
    const size_t head_end = input_.find("\r\n\r\n") + 4;
    parse_head(std::string_view(input_).substr(0, head_end), response);
    input_.erase(0, head_end);
    if (head_only || response.status == 204 || response.status == 100) {
      response.complete = true;
    } else if (response.headers.contains("content-length")) {
      const size_t length = std::strtoull(response.headers["content-length"].c_str(), nullptr, 10);
      while (input_.size() < length && fill(seconds)) {
      }
      response.complete = input_.size() >= length;
      response.body = input_.substr(0, length);
      input_.erase(0, length);
    } else if (response.headers.contains("transfer-encoding")) {
      response.complete = read_chunks(response.body, seconds);
    } else {
      response.complete = wait_for_close(seconds);
      response.body.swap(input_);
    }
    return response;
  }

  // At most `n` bytes as they come, thrown away; 0 when the peer has ended or nothing came within a second.
  size_t take_some(size_t n) {
    pollfd waiting{fd_, POLLIN, 0};
    if (ended_ || ::poll(&waiting, 1, 1000) <= 0) return 0;
    std::string bytes(n, ' ');
    const ssize_t got = ::recv(fd_, bytes.data(), n, 0);
    ended_ = got <= 0;
    return got <= 0 ? 0 : static_cast<size_t>(got);
  }

  const std::string& input() const { return input_; }

 private:
  bool fill(double seconds) {
    if (ended_) return false;
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
    char buffer[16 * 1024];
    const ssize_t n = ::recv(fd_, buffer, sizeof(buffer), 0);
    if (n <= 0) {
      ended_ = true;
      return false;
    }
    input_.append(buffer, static_cast<size_t>(n));
    return true;
  }

  static void parse_head(std::string_view head, RawResponse& response) {
    response.status = std::atoi(std::string(head.substr(9, 3)).c_str());
    size_t line = head.find("\r\n") + 2;
    while (line + 2 < head.size()) {
      const size_t end = head.find("\r\n", line);
      const std::string_view field = head.substr(line, end - line);
      const size_t colon = field.find(':');
      if (colon != std::string_view::npos) {
        std::string name(field.substr(0, colon));
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return std::tolower(c); });
        response.headers[name] = std::string(field.substr(std::min(field.size(), colon + 2)));
      }
      line = end + 2;
    }
  }

  bool read_chunks(std::string& body, double seconds) {
    while (true) {
      size_t line_end;
      while ((line_end = input_.find("\r\n")) == std::string::npos) {
        if (!fill(seconds)) return false;
      }
      const size_t size = std::strtoull(input_.substr(0, line_end).c_str(), nullptr, 16);
      while (input_.size() < line_end + 2 + size + 2) {
        if (!fill(seconds)) return false;
      }
      body += input_.substr(line_end + 2, size);
      input_.erase(0, line_end + 2 + size + 2);
      if (size == 0) return true;
    }
  }

  int fd_ = -1;
  bool connected_ = false;
  bool ended_ = false;
  std::string input_;
};

}  // namespace assay::testing
