#include "cli/serve_net_options.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "base/log.h"
#include "base/units.h"

namespace assay {
namespace {

constexpr double kDay = 86400;
constexpr uint64_t kOtherFiles = 64;  // model, logs, sockets of other kinds

void add_connection_options(CLI::App& app, ServeNetOptions& options) {
  app.add_option("--max-connections", options.http.max_connections, "open connections; more get 503")
      ->check(CLI::Range(1, 1 << 20))
      ->group("Limits")
      ->capture_default_str();
  app.add_option("--max-connections-per-client", options.http.max_connections_per_address,
                 "of one IPv4 address or IPv6 /64 network; more get 429; 0: no limit of its own")
      ->check(CLI::Range(0, 1 << 20))
      ->group("Limits")
      ->capture_default_str();
  app.add_option("--max-pipelined", options.http.max_pipelined,
                 "requests in a row that a client sends without waiting for answers; then it is closed")
      ->check(CLI::Range(0, 1 << 20))
      ->group("Limits")
      ->capture_default_str();
  app.add_option("--http-threads", options.http.io_threads, "threads that read requests and write answers")
      ->check(CLI::Range(1, 64))
      ->group("Limits")
      ->capture_default_str();
}

void add_size_options(CLI::App& app, ServeNetOptions& options) {
  const auto size = [&](const char* flag, std::string& target, const char* what) {
    app.add_option(flag, target, what)->group("Limits")->capture_default_str();
  };
  size("--max-body", options.max_body, "bytes of one request body; more get 413");
  size("--max-held-bodies", options.max_held_bodies, "bytes of all bodies that are arriving; more get 503");
  size("--max-head", options.max_head, "bytes of a request line and its headers; more get 431");
  size("--max-unsent", options.max_unsent, "unsent bytes of one answer before its client is given up");
  app.add_option("--max-headers", options.http.limits.max_fields, "header fields of a request; more get 431")
      ->check(CLI::Range(1, 10000))
      ->group("Limits")
      ->capture_default_str();
  app.add_option("--max-json-depth", options.max_json_depth, "nesting of a JSON body; deeper gets 400")
      ->check(CLI::Range(8, 256))
      ->group("Limits")
      ->capture_default_str();
}

void add_time_options(CLI::App& app, ServeNetOptions& options) {
  const auto seconds = [&](const char* flag, double& target, const char* what) {
    app.add_option(flag, target, what)
        ->check(CLI::Range(0.001, kDay))
        ->group("Limits")
        ->capture_default_str();
  };
  seconds("--idle-timeout", options.http.idle_timeout_seconds,
          "seconds that a connection may rest between requests");
  seconds("--head-timeout", options.http.head_timeout_seconds, "seconds for a request's line and headers");
  seconds("--body-timeout", options.http.body_timeout_seconds,
          "seconds for a body, and one more for each --min-body-rate bytes that arrive");
  seconds("--body-total", options.http.body_total_seconds, "seconds for a body however fast it comes");
  seconds("--write-timeout", options.http.write_timeout_seconds,
          "seconds that a client which has fallen behind may take nothing, or less than --min-write-rate");
  const auto rate = [&](const char* flag, uint64_t& target, const char* what) {
    app.add_option(flag, target, what)
        ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 30))
        ->group("Limits")
        ->capture_default_str();
  };
  rate("--min-body-rate", options.http.min_body_bytes_per_second, "bytes a second; 0: --body-timeout is all");
  rate("--min-write-rate", options.http.min_write_bytes_per_second, "bytes a second; 0: any progress counts");
}

void add_tls_options(CLI::App& app, ServeNetOptions& options) {
  auto* certificate =
      app.add_option("--tls-cert", options.tls_certificate,
                     "PEM file: the server's certificate, then intermediate ones; serves https alone");
  auto* key =
      app.add_option("--tls-key", options.tls_key, "PEM file: the certificate's private key, unencrypted");
  certificate->needs(key)->group("TLS and CORS");
  key->needs(certificate)->group("TLS and CORS");
  app.add_option("--tls-handshake-timeout", options.http.tls_handshake_timeout_seconds,
                 "seconds for agreeing on TLS")
      ->check(CLI::Range(0.001, kDay))
      ->group("TLS and CORS")
      ->capture_default_str();
  app.add_option(
         "--cors-origin", options.http.cors.origins,
         "origin whose pages may use the server, as https://chat.example.org; repeatable; \"*\": every page "
         "of the web, your browser's included; default: none")
      ->group("TLS and CORS")
      ->take_all()
      ->expected(1);
}

Result<uint64_t> size_of(std::string_view flag, const std::string& text, uint64_t least) {
  const auto bytes = parse_bytes(text);
  if (!bytes) return std::unexpected(bytes.error().within(flag));
  if (*bytes >= least) return *bytes;
  return fail(ErrorCode::kInvalidArgument, flag, "expected at least {} bytes, found {}", least, *bytes);
}

void raise_file_limit(int connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = static_cast<rlim_t>(connections) + kOtherFiles;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= wanted) return;
  log_warning("--max-connections {}: this process may open {} files; raise that limit (ulimit -n)",
              connections, static_cast<uint64_t>(limit.rlim_cur));
}

}  // namespace

void add_serve_net_options(CLI::App& app, ServeNetOptions& options) {
  add_connection_options(app, options);
  add_size_options(app, options);
  add_time_options(app, options);
  add_tls_options(app, options);
}

Result<ServerConfig> server_config(const ServeNetOptions& options) {
  ServerConfig config = options.http;
  ASSIGN_OR_RETURN(config.limits.body_bytes, size_of("--max-body", options.max_body, 1));
  ASSIGN_OR_RETURN(config.max_held_body_bytes, size_of("--max-held-bodies", options.max_held_bodies, 1));
  ASSIGN_OR_RETURN(const uint64_t head, size_of("--max-head", options.max_head, 256));
  if (head > (uint64_t{16} << 20)) {
    return fail(ErrorCode::kInvalidArgument, "--max-head", "expected at most 16 MiB, found {}",
                options.max_head);
  }
  config.limits.head_bytes = static_cast<uint32_t>(head);
  ASSIGN_OR_RETURN(config.max_stream_queue_bytes, size_of("--max-unsent", options.max_unsent, 4096));
  if (!options.tls_certificate.empty()) {
    config.tls = TlsFiles{options.tls_certificate, options.tls_key};
    RETURN_IF_ERROR(TlsContext::load(*config.tls));
  }
  const auto origins = check_cors_policy(config.cors);
  if (!origins) return std::unexpected(origins.error().within("--cors-origin"));
  raise_file_limit(config.max_connections);
  return config;
}

}  // namespace assay
