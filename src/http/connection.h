// Internal: one client connection. Everything but the ExchangeTransport calls runs on its strand.
//
// It waits for its socket to become readable and then reads into a buffer that all connections of an I/O
// thread share; what a message needs is held by the parser, and freed with it. So an idle connection costs
// its socket, its timer and this object.
#pragma once

#include "http/asio.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/channel.h"
#include "http/deadline.h"
#include "http/exchange.h"
#include "http/router.h"
#include "http/server.h"

namespace assay::http_internal {

using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;

// Shared by the server and its connections; the io_context lives as long as any of them.
struct Runtime {
  ServerConfig config;
  Router router;
  std::vector<Handler> handlers;
  boost::asio::io_context context;
  std::atomic<bool> draining{false};
  std::atomic<uint64_t> held_body_bytes{0};  // of requests that are arriving
  std::atomic<uint64_t> failed_handshakes{0};
  std::atomic<uint64_t> timed_out{0};
  std::function<void(uint64_t connection_id)> on_closed;

  explicit Runtime(ServerConfig settings) : config(std::move(settings)), context(config.io_threads) {}
};

class Connection final : public ExchangeTransport, public std::enable_shared_from_this<Connection> {
 public:
  // `tls`: null for plain HTTP.
  Connection(std::shared_ptr<Runtime> runtime, Socket socket, uint64_t id,
             std::shared_ptr<const TlsContext> tls);
  ~Connection() override;

  void start();                                  // any thread
  void refuse(int status, std::string message);  // any thread: answer without reading, then close
  void begin_drain();                            // any thread
  void cut();                                    // any thread

  void post(std::function<void()> work) override;
  void flush() override;
  void give_up() override { close(); }
  bool is_draining() const override { return runtime_->draining.load(); }

 private:
  // Greeting: TLS is being agreed on. Idle: between requests. Reading: a request has begun. Busy: it is being
  // answered. Lingering: answered for the last time; unread bytes are thrown away for a moment, so that
  // closing does not destroy what the client has yet to read.
  enum class State { kGreeting, kIdle, kReading, kBusy, kLingering, kClosed };

  void shake_hands();
  void wait_for(Channel::Status wanted, void (Connection::*next)());
  void read_some();
  void read_now();
  void on_bytes(std::string_view bytes);
  void on_read_end(bool clean);
  void discard_now();
  void advance();
  bool account_body();
  void allow_body_time(size_t arrived);
  void send_continue();
  void dispatch();
  void handle(HttpRequest request, Router::Match match);
  void answer_failure(int status, std::string_view message, std::string_view code = {});
  void write_now();
  void write_output(size_t& burst_bytes);
  void on_blocked(Channel::Status wanted);
  void allow_write_time(size_t taken);
  void complete();
  void linger();
  void close();
  void set_deadline(Clock::time_point when);
  void on_deadline();
  HttpResponse make_error(int status, std::string_view message, std::string_view code = {}) const;

  const std::shared_ptr<Runtime> runtime_;
  Socket socket_;
  Deadline deadline_;
  const uint64_t id_;
  std::unique_ptr<Channel> channel_;
  bool secure_;
  std::string peer_;
  RequestParser parser_;
  std::shared_ptr<Exchange> exchange_;
  State state_ = State::kIdle;
  Clock::time_point body_end_;  // of the total time
  std::string output_;
  size_t output_written_ = 0;
  size_t lingered_bytes_ = 0;
  uint64_t accounted_bytes_ = 0;   // this connection's part of held_body_bytes
  int in_row_ = 0;                 // requests that were here before the answer to the one before
  bool output_completes_ = false;  // the response ends with output_
  bool reading_ = false;
  bool writing_ = false;
  bool behind_ = false;  // the client has not taken all of output_ at once
  bool input_ended_ = false;
  bool continue_sent_ = false;
};

}  // namespace assay::http_internal
