#include "http/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string_view>

#include "base/file.h"

namespace assay {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 20;

// TLS 1.2; TLS 1.3 has sound ciphers only.
constexpr const char* kCiphers =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

std::string last_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "unknown reason" : reason;
}

// OpenSSL would ask at the terminal.
int refuse_passphrase(char*, int, int, void*) {
  return -1;
}

int select_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_bytes,
                    const unsigned char* offered, unsigned int offered_bytes, void*) {
  static constexpr std::string_view kHttp11 = "http/1.1";
  const std::string_view list(reinterpret_cast<const char*>(offered), offered_bytes);
  for (size_t at = 0; at < list.size();) {
    const auto length = static_cast<unsigned char>(list[at]);
    if (at + 1 + length > list.size()) break;
    if (list.substr(at + 1, length) == kHttp11) {
      *chosen = offered + at + 1;
      *chosen_bytes = length;
      return SSL_TLSEXT_ERR_OK;
    }
    at += 1U + length;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;  // RFC 7301 3.2: no_application_protocol
}

// OpenSSL's own messages do not tell a missing file from a broken one.
Result<void> check_file(const std::string& path, std::string_view kind) {
  const auto content = read_file(path, kMaxFileBytes);
  if (!content) return std::unexpected(content.error().within(kind));
  const bool has_certificate = content->find("-----BEGIN CERTIFICATE-----") != std::string::npos ||
                               content->find("-----BEGIN TRUSTED CERTIFICATE-----") != std::string::npos;
  if (kind == "TLS certificate" && !has_certificate) {
    return fail(ErrorCode::kCorrupt, path, "holds no PEM certificate (-----BEGIN CERTIFICATE-----)");
  }
  if (kind == "TLS key" && content->find("PRIVATE KEY-----") == std::string::npos) {
    return fail(ErrorCode::kCorrupt, path, "holds no PEM private key (-----BEGIN ... PRIVATE KEY-----)");
  }
  if (kind == "TLS key" && content->find("ENCRYPTED") != std::string::npos) {
    return fail(ErrorCode::kUnsupported, path,
                "the private key is encrypted; decrypt it first (openssl pkey -in FILE -out FILE)");
  }
  return {};
}

void configure(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context,
                      SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_cipher_list(context, kCiphers);
  // Sessions live in tickets that clients keep: a cache here would grow with every stranger.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_alpn_select_cb(context, select_protocol, nullptr);
  SSL_CTX_set_default_passwd_cb(context, refuse_passphrase);
}

std::string validity_warning(const X509* certificate) {
  if (certificate == nullptr) return {};
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) return "the certificate has expired";
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) return "the certificate is not valid yet";
  return {};
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsFiles& files) {
  RETURN_IF_ERROR(check_file(files.certificate_file, "TLS certificate"));
  RETURN_IF_ERROR(check_file(files.key_file, "TLS key"));
  ERR_clear_error();
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) return fail(ErrorCode::kInternal, "TLS", "cannot be set up: {}", last_reason());
  const std::shared_ptr<TlsContext> loaded(new TlsContext(context));
  configure(context);
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate_file.c_str()) != 1) {
    return fail(ErrorCode::kCorrupt, files.certificate_file, "is not a usable PEM certificate chain: {}",
                last_reason());
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    const int reason = ERR_GET_REASON(ERR_peek_last_error());
    const bool mismatch = reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH;
    if (mismatch) {
      return fail(ErrorCode::kInvalidArgument, files.key_file,
                  "is not the private key of the certificate in {}", files.certificate_file);
    }
    return fail(ErrorCode::kCorrupt, files.key_file, "is not a usable PEM private key: {}", last_reason());
  }
  if (SSL_CTX_check_private_key(context) != 1) {
    return fail(ErrorCode::kInvalidArgument, files.key_file,
                "is not the private key of the certificate in {}", files.certificate_file);
  }
  loaded->warning_ = validity_warning(SSL_CTX_get0_certificate(context));
  return loaded;
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

}  // namespace assay
