// The other end of connections_bench: clients in a process of their own, so that what they hold does not
// count as the server's. Plain or TLS, blocking but for the waiting. Header only.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace assay::bench {

class ClientConnection {
 public:
  // `tls`: null for plain HTTP; no certificate is verified.
  ClientConnection(uint16_t port, SSL_CTX* tls) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    alive_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    const int one = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (!alive_ || tls == nullptr) return;
    ssl_ = SSL_new(tls);
    SSL_set_fd(ssl_, fd_);
    alive_ = SSL_connect(ssl_) == 1;
  }
  ~ClientConnection() {
    SSL_free(ssl_);
    ::close(fd_);
  }
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  bool alive() const { return alive_; }
  int descriptor() const { return fd_; }
  bool has_pending() const { return ssl_ != nullptr && SSL_has_pending(ssl_) == 1; }

  void send(std::string_view bytes) {
    while (alive_ && !bytes.empty()) {
      const ssize_t n = ssl_ != nullptr ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                                        : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) alive_ = false;
      if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  // Appends what comes next to `input`; blocks when nothing is there.
  void receive(std::string& input) {
    char buffer[16 * 1024];
    const ssize_t n =
        ssl_ != nullptr ? SSL_read(ssl_, buffer, sizeof(buffer)) : ::recv(fd_, buffer, sizeof(buffer), 0);
    if (n <= 0) alive_ = false;
    if (n > 0) input.append(buffer, static_cast<size_t>(n));
  }
  bool receive_until(std::string& input, std::string_view end) {
    while (alive_ && input.find(end) == std::string::npos) receive(input);
    return alive_;
  }

 private:
  int fd_;
  SSL* ssl_ = nullptr;
  bool alive_ = false;
};

}  // namespace assay::bench
