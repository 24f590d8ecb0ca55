// Certificates made while a test runs, and a blocking TLS client that says exactly what it wants.
#pragma once

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "http/tls_context.h"

namespace assay::testing {

// A folder that is gone afterwards.
class CertificateFolder {
 public:
  CertificateFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "assay-tls-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~CertificateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CertificateFolder(const CertificateFolder&) = delete;
  CertificateFolder& operator=(const CertificateFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

  // A self-signed certificate for localhost and 127.0.0.1 that is valid from now + `from` to now + `to`
  // seconds.
  TlsFiles make(const std::string& name, long from = -60, long to = 3600,
                const char* passphrase = nullptr) const {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
    X509* x = certificate.get();
    X509_set_version(x, X509_VERSION_3);
    static long serial = 1;
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
    X509_gmtime_adj(X509_getm_notBefore(x), from);
    X509_gmtime_adj(X509_getm_notAfter(x), to);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, key.get());
    X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name,
                                                const_cast<char*>("DNS:localhost,IP:127.0.0.1"));
    X509_add_ext(x, names, -1);
    X509_EXTENSION_free(names);
    EXPECT_GT(X509_sign(x, key.get(), EVP_sha256()), 0);
    const TlsFiles files{file(name + ".crt"), file(name + ".key")};
    FILE* out = std::fopen(files.certificate_file.c_str(), "w");
    PEM_write_X509(out, x);
    std::fclose(out);
    out = std::fopen(files.key_file.c_str(), "w");
    PEM_write_PrivateKey(out, key.get(), passphrase == nullptr ? nullptr : EVP_aes_128_cbc(), nullptr, 0,
                         nullptr, const_cast<char*>(passphrase));
    std::fclose(out);
    return files;
  }

  std::string write(const std::string& name, std::string_view content) const {
    FILE* out = std::fopen(file(name).c_str(), "w");
    std::fwrite(content.data(), 1, content.size(), out);
    std::fclose(out);
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

// Independent of src/http. The descriptor stays its owner's.
class TlsClient {
 public:
  struct Wishes {
    int min_version = TLS1_2_VERSION;
    int max_version = TLS1_3_VERSION;
    std::string_view alpn = {};  // in wire form: "\x02h2\x08http/1.1"
    const char* ciphers = nullptr;
  };

  TlsClient(int descriptor, const Wishes& wishes) : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_security_level(context_,
                               0);  // old versions are to be refused by the server, not by this side
    SSL_CTX_set_min_proto_version(context_, wishes.min_version);
    SSL_CTX_set_max_proto_version(context_, wishes.max_version);
    if (wishes.ciphers != nullptr) SSL_CTX_set_cipher_list(context_, wishes.ciphers);
    ssl_ = SSL_new(context_);
    if (!wishes.alpn.empty()) {
      SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(wishes.alpn.data()),
                          static_cast<unsigned>(wishes.alpn.size()));
    }
    SSL_set_fd(ssl_, descriptor);
    connected_ = SSL_connect(ssl_) == 1;
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool connected() const { return connected_; }
  std::string version() const { return SSL_get_version(ssl_); }
  std::string cipher() const { return SSL_get_cipher_name(ssl_); }
  std::string protocol() const {
    const unsigned char* chosen = nullptr;
    unsigned length = 0;
    SSL_get0_alpn_selected(ssl_, &chosen, &length);
    return length == 0 ? std::string() : std::string(reinterpret_cast<const char*>(chosen), length);
  }
  std::string peer_name() const {
    const std::unique_ptr<X509, decltype(&X509_free)> peer(SSL_get1_peer_certificate(ssl_), X509_free);
    char name[256] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(peer.get()), NID_commonName, name, sizeof(name));
    return name;
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const int n = SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // Until `n` bytes are there or the peer ends.
  std::string receive(size_t n) {
    std::string all;
    char buffer[16 * 1024];
    while (all.size() < n) {
      const int got = SSL_read(ssl_, buffer, static_cast<int>(std::min(sizeof(buffer), n - all.size())));
      if (got <= 0) break;
      all.append(buffer, static_cast<size_t>(got));
    }
    return all;
  }
  // True when the peer said with TLS's own message that nothing follows.
  bool ended_cleanly() {
    char byte;
    return SSL_get_error(ssl_, SSL_read(ssl_, &byte, 1)) == SSL_ERROR_ZERO_RETURN;
  }

 private:
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
  bool connected_ = false;
};

}  // namespace assay::testing
