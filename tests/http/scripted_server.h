// A loopback server that plays fixed bytes to each connection, plain or TLS, whatever is asked: for clients
// that must cope with broken answers. Independent of src/http.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace assay::testing {

// A fresh self-signed certificate for the given name, valid from one day before to one day after now (or
// expired).
class TestCertificate {
 public:
  explicit TestCertificate(const std::string& alternative_name, bool expired = false) {
    key_.reset(EVP_EC_gen("P-256"));
    certificate_.reset(X509_new());
    X509* x = certificate_.get();
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -2 * 86400);
    X509_gmtime_adj(X509_getm_notAfter(x), expired ? -86400 : 86400);
    X509_set_pubkey(x, key_.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("assay test"), -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509V3_CTX context;
    X509V3_set_ctx(&context, x, x, nullptr, nullptr, 0);
    X509_EXTENSION* extension =
        X509V3_EXT_conf_nid(nullptr, &context, NID_subject_alt_name, alternative_name.c_str());
    X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(x, key_.get(), EVP_sha256());
  }

  std::string pem() const {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, certificate_.get());
    char* data = nullptr;
    const long n = BIO_get_mem_data(bio, &data);
    std::string text(data, static_cast<size_t>(n));
    BIO_free(bio);
    return text;
  }
  X509* certificate() const { return certificate_.get(); }
  EVP_PKEY* key() const { return key_.get(); }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  std::unique_ptr<EVP_PKEY, Free> key_;
  std::unique_ptr<X509, Free> certificate_;
};

class ScriptedServer {
 public:
  // Connection i gets answers[i] (the last one again and again). `hold`: keep the connection open after the
  // answer.
  explicit ScriptedServer(std::vector<std::string> answers, bool hold = false,
                          const TestCertificate* certificate = nullptr)
      : answers_(std::move(answers)), hold_(hold) {
    std::signal(SIGPIPE, SIG_IGN);
    if (certificate != nullptr) {
      tls_.reset(SSL_CTX_new(TLS_server_method()));
      SSL_CTX_use_certificate(tls_.get(), certificate->certificate());
      SSL_CTX_use_PrivateKey(tls_.get(), certificate->key());
    }
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    ::listen(listener_, 16);
    socklen_t length = sizeof(address);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedServer() {
    stop_ = true;
    thread_.join();
    ::close(listener_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  uint16_t port() const { return port_; }
  std::string url(const std::string& path = "/", const std::string& host = "127.0.0.1") const {
    return (tls_ ? "https://" : "http://") + host + ":" + std::to_string(port_) + path;
  }
  std::vector<std::string> requests() const {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  bool wait_readable(int fd) const {
    while (!stop_) {
      pollfd waiting{fd, POLLIN, 0};
      if (::poll(&waiting, 1, 20) > 0) return true;
    }
    return false;
  }

  void serve() {
    while (wait_readable(listener_)) {
      const int fd = ::accept(listener_, nullptr, nullptr);
      if (fd < 0) continue;
      talk(fd);
      ::close(fd);
    }
  }

  void talk(int fd) {
    std::unique_ptr<SSL, Free> ssl;
    if (tls_) {
      ssl.reset(SSL_new(tls_.get()));
      SSL_set_fd(ssl.get(), fd);
      if (SSL_accept(ssl.get()) != 1) {
        ERR_clear_error();
        return;
      }
    }
    std::string request;
    char buffer[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      if (!wait_readable(fd)) return;
      const ssize_t n =
          ssl ? SSL_read(ssl.get(), buffer, sizeof(buffer)) : ::recv(fd, buffer, sizeof(buffer), 0);
      if (n <= 0) return;
      request.append(buffer, static_cast<size_t>(n));
    }
    std::string answer;
    {
      const std::scoped_lock lock(mutex_);
      requests_.push_back(request);
      answer = answers_[std::min(requests_.size(), answers_.size()) - 1];
    }
    if (ssl) {
      if (!answer.empty()) SSL_write(ssl.get(), answer.data(), static_cast<int>(answer.size()));
      SSL_shutdown(ssl.get());
    } else {
      ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    if (hold_ && wait_readable(fd)) ::recv(fd, buffer, sizeof(buffer), 0);
  }

  std::vector<std::string> answers_;
  bool hold_;
  std::unique_ptr<SSL_CTX, Free> tls_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace assay::testing
