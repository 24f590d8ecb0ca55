#include "http/client_stream.h"

#include "http/asio.h"
// The includes above come first: they configure Asio.
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <chrono>
#include <optional>

namespace assay::http_internal {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

class AsioStream final : public ClientStream {
 public:
  explicit AsioStream(const Url& url) : where_(url.to_string()), resolver_(context_), socket_(context_) {}

  Result<void> open(const Url& url, const std::string& ca_file, double seconds);
  Result<size_t> write_some(std::string_view bytes, double seconds) override;
  Result<size_t> read_some(std::span<char> bytes, double seconds) override;

 private:
  struct Outcome {
    error_code error;
    size_t n = 0;
    bool timed_out = false;
  };

  // Runs one asynchronous operation to its end or its deadline. start(handler) begins it.
  template <class Start>
  Outcome perform(double seconds, Start start) {
    Outcome outcome;
    bool done = false;
    start([&](const error_code& error, size_t n) {
      outcome.error = error;
      outcome.n = n;
      done = true;
    });
    context_.restart();
    context_.run_for(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds)));
    if (!done) {
      outcome.timed_out = true;
      error_code ignored;
      resolver_.cancel();
      socket_.close(ignored);
      // The handler still refers to this frame: let it end.
      while (!done && context_.run_one() > 0) {
      }
    }
    return outcome;
  }

  Result<void> shake_hands(const Url& url, const std::string& ca_file, double seconds);
  Error explain(std::string_view doing, const Outcome& outcome, double seconds) const;

  std::string where_;
  asio::io_context context_;
  tcp::resolver resolver_;
  tcp::socket socket_;
  std::optional<asio::ssl::context> tls_context_;
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
};

Error AsioStream::explain(std::string_view doing, const Outcome& outcome, double seconds) const {
  if (outcome.timed_out) {
    return {ErrorCode::kUnavailable, where_,
            fmt::format("timed out after {:.3g} s while {}", seconds, doing)};
  }
  return {ErrorCode::kNetwork, where_, fmt::format("failed while {}: {}", doing, outcome.error.message())};
}

Result<void> AsioStream::open(const Url& url, const std::string& ca_file, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  const auto left = [&] {
    const std::chrono::duration<double> used = std::chrono::steady_clock::now() - start;
    return std::max(0.001, seconds - used.count());
  };
  tcp::resolver::results_type endpoints;
  Outcome outcome = perform(left(), [&](auto handler) {
    resolver_.async_resolve(
        url.host, std::to_string(url.port),
        [&endpoints, handler](const error_code& error, tcp::resolver::results_type found) {
          endpoints = std::move(found);
          handler(error, 0);
        });
  });
  if (outcome.timed_out || outcome.error) {
    return std::unexpected(explain("looking up " + url.host, outcome, seconds));
  }
  outcome = perform(left(), [&](auto handler) {
    asio::async_connect(socket_, endpoints,
                        [handler](const error_code& error, const tcp::endpoint&) { handler(error, 0); });
  });
  if (outcome.timed_out || outcome.error) return std::unexpected(explain("connecting", outcome, seconds));
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  if (!url.https) return {};
  return shake_hands(url, ca_file, left());
}

Result<void> AsioStream::shake_hands(const Url& url, const std::string& ca_file, double seconds) {
  tls_context_.emplace(asio::ssl::context::tls_client);
  error_code error;
  tls_context_->set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  tls_context_->set_default_verify_paths(error);
  if (!ca_file.empty()) {
    tls_context_->load_verify_file(ca_file, error);
    if (error)
      return fail(ErrorCode::kInvalidArgument, ca_file, "cannot read certificates: {}", error.message());
  }
  tls_.emplace(socket_, *tls_context_);
  tls_->set_verify_mode(asio::ssl::verify_peer, error);
  tls_->set_verify_callback(asio::ssl::host_name_verification(url.host), error);
  SSL_set_tlsext_host_name(tls_->native_handle(), url.host.c_str());
  const Outcome outcome = perform(seconds, [&](auto handler) {
    tls_->async_handshake(asio::ssl::stream_base::client, [handler](const error_code& e) { handler(e, 0); });
  });
  if (!outcome.timed_out && !outcome.error) return {};
  Error explained = explain("agreeing on TLS", outcome, seconds);
  const long verdict = SSL_get_verify_result(tls_->native_handle());
  if (!outcome.timed_out && verdict != X509_V_OK) {
    explained.what =
        fmt::format("the server's certificate is not trusted: {}", X509_verify_cert_error_string(verdict));
  }
  return std::unexpected(std::move(explained));
}

Result<size_t> AsioStream::write_some(std::string_view bytes, double seconds) {
  const auto buffer = asio::buffer(bytes.data(), bytes.size());
  const Outcome outcome = perform(seconds, [&](auto handler) {
    tls_ ? tls_->async_write_some(buffer, handler) : socket_.async_write_some(buffer, handler);
  });
  if (outcome.timed_out || outcome.error) return std::unexpected(explain("sending", outcome, seconds));
  return outcome.n;
}

Result<size_t> AsioStream::read_some(std::span<char> bytes, double seconds) {
  const auto buffer = asio::buffer(bytes.data(), bytes.size());
  const Outcome outcome = perform(seconds, [&](auto handler) {
    tls_ ? tls_->async_read_some(buffer, handler) : socket_.async_read_some(buffer, handler);
  });
  // A TLS peer that closes without its closing message reports stream_truncated: an error, as it should be.
  if (outcome.error == asio::error::eof) return size_t{0};
  if (outcome.timed_out || outcome.error)
    return std::unexpected(explain("waiting for the answer", outcome, seconds));
  return outcome.n;
}

}  // namespace

Result<std::unique_ptr<ClientStream>> ClientStream::connect(const Url& url, const std::string& ca_file,
                                                            double seconds) {
  auto stream = std::make_unique<AsioStream>(url);
  RETURN_IF_ERROR(stream->open(url, ca_file, seconds));
  return stream;
}

}  // namespace assay::http_internal
