// An HTTP/1.1 server over loopback or LAN: routes, keep-alive, pipelining, streamed responses, limits,
// graceful drain. Plain HTTP; put a TLS proxy in front of it where the network is not trusted.
//
// Ownership: the server owns its threads and sockets. Handlers and responders may outlive a connection:
// sending to one that is gone is harmless. Thread safety: handlers run on an I/O thread and must not block; a
// Responder may be used from any thread. Failure: start() names the address and the reason (port taken, no
// permission). What clients send never stops the server: each gets a status and, after a protocol error, a
// closed connection. Cost: one I/O thread unless more are asked for; a send() from another thread copies the
// bytes under a short lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"
#include "http/message_parser.h"

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
  int max_connections = 1024;  // more get 503 and are closed
  ParserLimits limits;
  double idle_timeout_seconds = 75;   // keep-alive without a request
  double head_timeout_seconds = 15;   // from the first byte of a request to the end of its headers
  double body_timeout_seconds = 60;   // and from there to the end of its body
  double write_timeout_seconds = 30;  // a client that takes no byte for so long is given up
  size_t max_stream_queue_bytes = size_t{4}
                                  << 20;  // unsent bytes of one response before its client is given up

  // The body of answers that the server makes itself (400, 404, 405, 408, 413, 431, 500, 501, 503). Default:
  // plain text.
  std::function<HttpResponse(int status, std::string_view message)> make_error;
  std::function<void(const AccessRecord&)> on_access;  // on an I/O thread
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

  // Closes the listening socket; what is connected stays.
  virtual void stop_accepting() = 0;
  // Stops accepting, closes idle connections, lets answers in progress finish; when the time is over, cuts
  // them. True when nothing had to be cut. Blocks; not to be called from a handler.
  virtual bool drain(double timeout_seconds) = 0;
};

}  // namespace assay
