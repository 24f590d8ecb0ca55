#include "http/channel.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace assay::http_internal {
namespace {

using Status = Channel::Status;
using Outcome = Channel::Outcome;

ssize_t receive(int descriptor, char* bytes, size_t n) {
  ssize_t got = 0;
  do {
    got = ::recv(descriptor, bytes, n, 0);
  } while (got < 0 && errno == EINTR);
  return got;
}

ssize_t transmit(int descriptor, const char* bytes, size_t n) {
  ssize_t sent = 0;
  do {
    sent = ::send(descriptor, bytes, n, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}

class PlainChannel final : public Channel {
 public:
  explicit PlainChannel(int descriptor) : descriptor_(descriptor) {}

  Outcome shake_hands() override { return {Status::kDone, 0}; }
  Outcome read(std::span<char> bytes) override {
    const ssize_t n = receive(descriptor_, bytes.data(), bytes.size());
    if (n > 0) return {Status::kDone, static_cast<size_t>(n)};
    if (n == 0) return {Status::kEnded, 0};
    return {would_block() ? Status::kWantsRead : Status::kFailed, 0};
  }
  Outcome write(std::string_view bytes) override {
    const ssize_t n = transmit(descriptor_, bytes.data(), bytes.size());
    if (n >= 0) return {Status::kDone, static_cast<size_t>(n)};
    return {would_block() ? Status::kWantsWrite : Status::kFailed, 0};
  }
  bool has_pending() const override { return false; }
  void end() override {}

 private:
  const int descriptor_;
};

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL: a client that leaves would kill the process.
int bio_write(BIO* bio, const char* bytes, size_t n, size_t* written) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = transmit(static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))), bytes, n);
  if (sent >= 0) {
    *written = static_cast<size_t>(sent);
    return 1;
  }
  if (would_block()) BIO_set_retry_write(bio);
  return 0;
}

int bio_read(BIO* bio, char* bytes, size_t n, size_t* got) {
  BIO_clear_retry_flags(bio);
  const ssize_t received = receive(static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))), bytes, n);
  if (received > 0) {
    *got = static_cast<size_t>(received);
    return 1;
  }
  if (received == 0) {
    BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  } else if (would_block()) {
    BIO_set_retry_read(bio);
  }
  return 0;
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

// Lives as long as the process, as OpenSSL's own methods do.
BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without signals");
    if (made == nullptr) return made;
    BIO_meth_set_write_ex(made, bio_write);
    BIO_meth_set_read_ex(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

class TlsChannel final : public Channel {
 public:
  explicit TlsChannel(SSL* ssl) : ssl_(ssl) {}

  Outcome shake_hands() override {
    ERR_clear_error();
    return judge(SSL_do_handshake(ssl_.get()), 0);
  }
  Outcome read(std::span<char> bytes) override {
    ERR_clear_error();
    size_t n = 0;
    const int result = SSL_read_ex(ssl_.get(), bytes.data(), bytes.size(), &n);
    return judge(result, n);
  }
  Outcome write(std::string_view bytes) override {
    ERR_clear_error();
    size_t n = 0;
    const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &n);
    return judge(result, n);
  }
  bool has_pending() const override { return SSL_has_pending(ssl_.get()) == 1; }
  void end() override {
    ERR_clear_error();
    if (!failed_ && SSL_is_init_finished(ssl_.get()) == 1) SSL_shutdown(ssl_.get());
  }

 private:
  Outcome judge(int result, size_t n) {
    if (result > 0) return {Status::kDone, n};
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {Status::kWantsRead, 0};
      case SSL_ERROR_WANT_WRITE:
        return {Status::kWantsWrite, 0};
      case SSL_ERROR_ZERO_RETURN:
        return {Status::kEnded, 0};
      default:
        failed_ = true;  // SSL_shutdown must not be called any more
        return {ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST ? Status::kPlainText : Status::kFailed,
                0};
    }
  }

  const std::unique_ptr<SSL, FreeSsl> ssl_;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Channel> make_plain_channel(int descriptor) {
  return std::make_unique<PlainChannel>(descriptor);
}

std::unique_ptr<Channel> make_tls_channel(int descriptor, const TlsContext& context) {
  ERR_clear_error();
  SSL* ssl = SSL_new(context.native());
  if (ssl == nullptr) return nullptr;
  auto channel = std::make_unique<TlsChannel>(ssl);
  BIO* bio = socket_method() == nullptr ? nullptr : BIO_new(socket_method());
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_accept_state(ssl);
  return channel;
}

}  // namespace assay::http_internal
