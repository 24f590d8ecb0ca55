// An HTTP/1.1 server, plain or over TLS: routes, keep-alive, pipelining, streamed responses, limits, graceful
// drain. One request of a connection is answered at a time; further ones wait unread.
//
// Ownership: the server owns its threads and sockets. Handlers and responders may outlive a connection:
// sending to one that is gone is harmless. Thread safety: handlers run on an I/O thread and must not block; a
// Responder may be used from any thread. Failure: start() names the address and the reason (port taken, no
// permission). What clients send never stops the server: each gets a status and, after a protocol error, a
// closed connection. Cost: one I/O thread unless more are asked for; a send() from another thread copies the
// bytes under a short lock. Memory: an idle connection holds no buffers (docs/serving.md has the figures).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/cors.h"
#include "http/message.h"
#include "http/message_parser.h"
#include "http/tls_context.h"

namespace assay {

// Answers one request, exactly once: respond(), or start_stream() then send()... then finish(). A responder
// that is destroyed without an answer answers 500. Copies of the shared_ptr may be kept as long as needed.
class Responder {
 public:
  virtual ~Responder() = default;

  virtual void respond(HttpResponse response) = 0;

  // A body of unknown length, chunked (or until close for HTTP/1.0 clients).
  virtual void start_stream(int status, Headers headers) = 0;
  // Never blocks. False when the client is gone or has been given up because it reads too slowly (its queue
  // outgrew ServerConfig::max_stream_queue_bytes); on_disconnect's callback has run or is about to.
  virtual bool send(std::string_view bytes) = 0;
  virtual void finish() = 0;

  // Called at most once, on an I/O thread, when the connection dies before the answer is complete; at once
  // when that has happened already. Not called after a complete answer was handed over.
  virtual void on_disconnect(std::function<void()> callback) = 0;
  virtual bool disconnected() const = 0;
  // Runs `work` on the connection's I/O thread; dropped when the connection is gone.
  virtual void post(std::function<void()> work) = 0;
};

using Handler = std::function<void(HttpRequest request, std::shared_ptr<Responder> responder)>;

// The answer to a failure that the server finds itself. `code` names it for programs: error_code_of(status)
// in message.h, or "too_many_bodies" for the 503 of ServerConfig::max_held_body_bytes.
using ErrorMaker = std::function<HttpResponse(int status, std::string_view code, std::string_view message)>;

// What was answered, for logs and metrics.
struct AccessRecord {
  std::string method;
  std::string route;  // the pattern, or empty when none matched
  std::string request_id;
  int status = 0;
  uint64_t body_bytes = 0;
  double seconds = 0;         // from the end of the request to the end of the response
  bool disconnected = false;  // the client left first
};

struct ServerConfig {
  std::string address = "127.0.0.1";  // IPv4 or IPv6 address; "0.0.0.0" listens to everyone
  uint16_t port = 0;                  // 0: a free one, see port()
  int io_threads = 1;
  std::optional<TlsFiles> tls;  // read at start; the port speaks TLS alone then
  CorsPolicy cors;

  int max_connections = 4096;              // more get 503 and are closed
  int max_connections_per_address = 2048;  // of one client (address_quota.h), more get 429; 0: no limit
  int max_pipelined =
      128;  // requests in a row for whose answers the client has not waited; then it is closed
  ParserLimits limits;
  // Bodies that are still arriving, of all connections together; a request that exceeds it gets 503.
  uint64_t max_held_body_bytes = uint64_t{512} << 20;
  // Unsent bytes of one response before its client is given up.
  size_t max_stream_queue_bytes = size_t{4} << 20;
  int socket_buffer_bytes = 256 << 10;  // of the system, for each direction of a connection

  double idle_timeout_seconds = 75;           // keep-alive without a request
  double tls_handshake_timeout_seconds = 10;  // from the connection to the end of the handshake
  double head_timeout_seconds = 15;           // from the first byte of a request to the end of its headers
  // A body gets this time, and one second more for every min_body_bytes_per_second that arrive, up to the
  // total; 0 bytes: the time is not extended.
  double body_timeout_seconds = 30;
  uint64_t min_body_bytes_per_second = 1024;
  double body_total_seconds = 600;
  // A client that takes no byte for so long, or fewer than the rate once it has fallen behind for so long, is
  // given up; 0: no rate.
  double write_timeout_seconds = 30;
  uint64_t min_write_bytes_per_second = 256;

  // The body of answers that the server makes itself (400, 403, 404, 405, 408, 413, 417, 429, 431, 500,
  // 501, 503). Default: plain text.
  ErrorMaker make_error;
  std::function<void(const AccessRecord&)> on_access;  // on an I/O thread
};

// Since the start.
struct ServerCounters {
  uint64_t accepted = 0;
  uint64_t refused_total = 0;        // over max_connections
  uint64_t refused_per_address = 0;  // over max_connections_per_address
  uint64_t failed_handshakes = 0;    // TLS, timeouts and plain HTTP included
  uint64_t timed_out = 0;            // slow heads, bodies and readers; idle connections not
};

class HttpServer {
 public:
  // Routes are fixed before listening: no request can come early.
  struct Route {
    std::string method;
    std::string pattern;  // see router.h
    Handler handler;
  };
  static Result<std::unique_ptr<HttpServer>> start(ServerConfig config, std::vector<Route> routes);
  virtual ~HttpServer() = default;  // drain(0), then joins the I/O threads

  virtual uint16_t port() const = 0;
  virtual std::string address() const = 0;  // "127.0.0.1:8080"
  virtual int connections() const = 0;
  virtual ServerCounters counters() const = 0;
  virtual uint64_t held_body_bytes() const = 0;  // bounded by max_held_body_bytes

  // Reads certificate and key again; connections from now on get the new ones. On failure the old ones stay.
  // kInvalidArgument when the server speaks no TLS. Any thread; blocks for the time of reading.
  virtual Result<void> reload_tls() = 0;

  // Closes the listening socket; what is connected stays.
  virtual void stop_accepting() = 0;
  // Stops accepting, closes idle connections, lets answers in progress finish; when the time is over, cuts
  // them. True when nothing had to be cut. Blocks; not to be called from a handler.
  virtual bool drain(double timeout_seconds) = 0;
};

}  // namespace assay
