// A server's certificate and key, ready to serve TLS 1.2 and 1.3 with forward secrecy and authenticated
// ciphers only (RFC 9325), ALPN "http/1.1" (RFC 7301), no compression, no renegotiation, stateless
// resumption. Thread safety: immutable once loaded; connections keep the one they began with, so it may be
// replaced under way. Failure: kNotFound, kIo (unreadable), kCorrupt (no certificate or key in it, encrypted
// key), kInvalidArgument (the key is another certificate's). Cost: one load reads both files.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"

struct ssl_ctx_st;

namespace assay {

// PEM files. The certificate file begins with the server's own and goes on with intermediate ones.
struct TlsFiles {
  std::string certificate_file;
  std::string key_file;  // unencrypted
};

class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>> load(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  ssl_ctx_st* native() const { return context_; }
  // Why clients will refuse the certificate although it is served: expired, or not valid yet. Empty: nothing.
  const std::string& warning() const { return warning_; }

 private:
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}

  ssl_ctx_st* context_;
  std::string warning_;
};

}  // namespace assay
