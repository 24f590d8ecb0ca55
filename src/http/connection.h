// Internal: one client connection. Everything but the ExchangeTransport calls runs on its strand.
#pragma once

#include "http/asio.h"

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/exchange.h"
#include "http/router.h"
#include "http/server.h"

namespace assay::http_internal {

using Executor = boost::asio::strand<boost::asio::io_context::executor_type>;
using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;
using Timer =
    boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                      boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

// Shared by the server and its connections; the io_context lives as long as any of them.
struct Runtime {
  ServerConfig config;
  Router router;
  std::vector<Handler> handlers;
  boost::asio::io_context context;
  std::atomic<bool> draining{false};
  std::function<void(uint64_t connection_id)> on_closed;

  explicit Runtime(ServerConfig settings) : config(std::move(settings)), context(config.io_threads) {}
};

class Connection final : public ExchangeTransport, public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Runtime> runtime, Socket socket, uint64_t id);
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
  // Idle: between requests. Reading: a request has begun. Busy: it is being answered. Lingering: answered for
  // the last time; unread bytes are thrown away for a moment, so that closing does not destroy what the
  // client has yet to read.
  enum class State { kIdle, kReading, kBusy, kLingering, kClosed };

  void read_some();
  void on_read(const boost::system::error_code& error, size_t n);
  void on_read_end(bool clean);
  void advance();
  void dispatch();
  void answer_failure(int status, std::string_view message);
  void write_some();
  void on_written(const boost::system::error_code& error, size_t n);
  void complete();
  void linger();
  void close();
  void arm(double seconds);
  void on_timeout();
  HttpResponse make_error(int status, std::string_view message) const;

  const std::shared_ptr<Runtime> runtime_;
  Socket socket_;
  Timer timer_;
  const uint64_t id_;
  std::string peer_;
  RequestParser parser_;
  std::shared_ptr<Exchange> exchange_;
  State state_ = State::kIdle;
  uint64_t timer_generation_ = 0;
  std::array<char, 16 * 1024> input_;
  std::string output_;
  size_t output_written_ = 0;
  size_t lingered_bytes_ = 0;
  bool output_completes_ = false;  // the response ends with output_
  bool reading_ = false;
  bool writing_ = false;
  bool input_ended_ = false;
  bool continue_sent_ = false;
};

}  // namespace assay::http_internal
