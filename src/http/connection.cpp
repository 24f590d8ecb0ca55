#include "http/connection.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <utility>

namespace assay::http_internal {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr double kLingerSeconds = 2;
constexpr size_t kLingerBytes = size_t{64} << 20;  // enough for a client to notice its refused upload

// What handlers hold. Its death without an answer is noticed.
class ExchangeResponder final : public Responder {
 public:
  ExchangeResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<Runtime> runtime)
      : exchange_(std::move(exchange)), runtime_(std::move(runtime)) {}
  ~ExchangeResponder() override { exchange_->abandon(runtime_->config.make_error); }

  void respond(HttpResponse response) override { exchange_->respond(std::move(response)); }
  void start_stream(int status, Headers headers) override {
    exchange_->start_stream(status, std::move(headers));
  }
  bool send(std::string_view bytes) override { return exchange_->send(bytes); }
  void finish() override { exchange_->finish(); }
  void on_disconnect(std::function<void()> callback) override {
    exchange_->on_disconnect(std::move(callback));
  }
  bool disconnected() const override { return exchange_->disconnected(); }
  void post(std::function<void()> work) override { exchange_->post(std::move(work)); }

 private:
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<Runtime> runtime_;
};

}  // namespace

Connection::Connection(std::shared_ptr<Runtime> runtime, Socket socket, uint64_t id)
    : runtime_(std::move(runtime)),
      socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      id_(id),
      parser_(runtime_->config.limits) {
  error_code error;
  socket_.set_option(asio::ip::tcp::no_delay(true), error);
  const auto endpoint = socket_.remote_endpoint(error);
  peer_ = fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

Connection::~Connection() = default;

void Connection::start() {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    if (self->runtime_->draining.load()) return self->close();
    self->arm(self->runtime_->config.idle_timeout_seconds);
    self->read_some();
  });
}

void Connection::refuse(int status, std::string message) {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this(), status, message = std::move(message)] {
    self->answer_failure(status, message);
  });
}

void Connection::begin_drain() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::kIdle) self->close();
  });
}

void Connection::cut() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void Connection::post(std::function<void()> work) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), work = std::move(work)] { work(); });
}

// --- reading ---

void Connection::read_some() {
  if (reading_ || input_ended_ || state_ == State::kClosed) return;
  reading_ = true;
  socket_.async_read_some(
      asio::buffer(input_),
      [self = shared_from_this()](const error_code& error, size_t n) { self->on_read(error, n); });
}

void Connection::on_read(const error_code& error, size_t n) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) return on_read_end(error == asio::error::eof);
  if (state_ == State::kLingering) {
    lingered_bytes_ += n;
    if (lingered_bytes_ > kLingerBytes) return close();
    return read_some();
  }
  parser_.append({input_.data(), n});
  if (state_ == State::kBusy) {
    // Pipelined bytes wait in the parser. Reading goes on, to notice a client that leaves, until they outgrow
    // a head.
    if (parser_.buffered_bytes() < runtime_->config.limits.head_bytes) read_some();
    return;
  }
  advance();
}

// A client that ends its side while its answer is being made is taken to be gone: at this point close() and
// shutdown(SHUT_WR) look the same, and a generation nobody reads must stop. An answer that is complete is
// still sent.
void Connection::on_read_end(bool clean) {
  input_ended_ = true;
  if (clean && state_ == State::kBusy && exchange_ && exchange_->is_answered()) {
    exchange_->request_close();
    return;
  }
  close();
}

void Connection::advance() {
  if (state_ == State::kIdle && parser_.buffered_bytes() > 0) {
    state_ = State::kReading;
    arm(runtime_->config.head_timeout_seconds);
  }
  const bool had_head = parser_.head_done();
  switch (parser_.parse()) {
    case ParseStatus::kFailed:
      return answer_failure(parser_.failure().status, parser_.failure().message);
    case ParseStatus::kDone:
      return dispatch();
    case ParseStatus::kNeedMore:
      break;
  }
  if (parser_.head_done() && !had_head) arm(runtime_->config.body_timeout_seconds);
  if (parser_.head_done() && parser_.expects_continue() && !continue_sent_) {
    continue_sent_ = true;
    auto text = std::make_shared<std::string>("HTTP/1.1 100 Continue\r\n\r\n");
    // Nothing else is being written while a request is read; the answer waits for this in flush().
    writing_ = true;
    asio::async_write(socket_, asio::buffer(*text),
                      [self = shared_from_this(), text](const error_code& error, size_t) {
                        self->writing_ = false;
                        if (error) return self->close();
                        if (self->exchange_) self->flush();
                      });
  }
  read_some();
}

void Connection::dispatch() {
  HttpRequest request;
  const bool keeps_alive = parser_.keeps_alive();
  request = parser_.take();
  continue_sent_ = false;
  state_ = State::kBusy;
  arm(0);
  request.peer = peer_;
  const auto id = request.headers.find("X-Request-Id");
  request.request_id = id && is_valid_request_id(*id) ? std::string(*id) : make_request_id();
  Router::Match match = runtime_->router.find(request.method, request.path);
  exchange_ = std::make_shared<Exchange>(
      weak_from_this(),
      ExchangeSettings{request.method, match.pattern, request.request_id, request.http_1_0,
                       !keeps_alive || runtime_->draining.load(), runtime_->config.max_stream_queue_bytes});
  if (match.kind == Router::Match::Kind::kFound) {
    request.path_parameters = std::move(match.parameters);
    auto responder = std::make_shared<ExchangeResponder>(exchange_, runtime_);
    try {
      runtime_->handlers[match.handler](std::move(request), responder);
    } catch (const std::exception& failure) {
      responder->respond(make_error(500, fmt::format("internal error: {}", failure.what())));
    }
  } else if (match.kind == Router::Match::Kind::kMethodNotAllowed) {
    HttpResponse response = make_error(
        405, fmt::format("{} does not support {}; allowed: {}", request.path, request.method, match.allow));
    response.headers.add("Allow", match.allow);
    exchange_->respond(std::move(response));
  } else if (match.kind == Router::Match::Kind::kBadPath) {
    exchange_->respond(make_error(400, "the path has a '%' without two hexadecimal digits"));
  } else {
    exchange_->respond(make_error(404, fmt::format("no such route: {} {}", request.method, request.path)));
  }
  if (parser_.buffered_bytes() < runtime_->config.limits.head_bytes) read_some();
}

HttpResponse Connection::make_error(int status, std::string_view message) const {
  return runtime_->config.make_error(status, message);
}

// The stream of requests is broken or unwelcome: one answer, then the end.
void Connection::answer_failure(int status, std::string_view message) {
  if (state_ == State::kClosed) return;
  state_ = State::kBusy;
  arm(0);
  input_ended_ = true;  // nothing more is parsed; linger() reads what is left
  exchange_ = std::make_shared<Exchange>(
      weak_from_this(), ExchangeSettings{"", "", make_request_id(), false, true, size_t{1} << 20});
  exchange_->respond(make_error(status, message));
}

// --- writing ---

void Connection::flush() {
  if (writing_ || state_ != State::kBusy || !exchange_) return;
  Exchange::Ready ready = exchange_->take_ready();
  output_ = std::move(ready.bytes);
  output_written_ = 0;
  output_completes_ = ready.complete;
  if (!output_.empty()) {
    writing_ = true;
    write_some();
  } else if (output_completes_) {
    complete();
  }
}

// Piece by piece, so that the timeout measures lack of progress and not the size of the answer.
void Connection::write_some() {
  arm(runtime_->config.write_timeout_seconds);
  socket_.async_write_some(
      asio::buffer(output_.data() + output_written_, output_.size() - output_written_),
      [self = shared_from_this()](const error_code& error, size_t n) { self->on_written(error, n); });
}

void Connection::on_written(const error_code& error, size_t n) {
  if (state_ == State::kClosed) return;
  if (error) {
    writing_ = false;
    return close();
  }
  output_written_ += n;
  if (output_written_ < output_.size()) return write_some();
  writing_ = false;
  arm(0);
  if (output_completes_) return complete();
  flush();
}

void Connection::complete() {
  const std::shared_ptr<Exchange> done = std::exchange(exchange_, nullptr);
  output_.clear();
  if (runtime_->config.on_access) runtime_->config.on_access(done->access_record(false));
  if (done->closes_after() || input_ended_ || runtime_->draining.load()) return linger();
  state_ = State::kIdle;
  arm(runtime_->config.idle_timeout_seconds);
  // Through the queue, so that many pipelined requests do not nest their calls.
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::kIdle) self->advance();
  });
}

void Connection::linger() {
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  state_ = State::kLingering;
  input_ended_ = false;
  arm(kLingerSeconds);
  read_some();
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  ++timer_generation_;
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (const std::shared_ptr<Exchange> open = std::exchange(exchange_, nullptr)) {
    open->close();
    if (runtime_->config.on_access) runtime_->config.on_access(open->access_record(true));
  }
  runtime_->on_closed(id_);
}

// --- time ---

void Connection::arm(double seconds) {
  const uint64_t generation = ++timer_generation_;
  timer_.cancel();
  if (seconds <= 0) return;
  timer_.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds)));
  timer_.async_wait([self = shared_from_this(), generation](const error_code&) {
    if (generation == self->timer_generation_) self->on_timeout();
  });
}

void Connection::on_timeout() {
  if (state_ == State::kReading) {
    return answer_failure(408, parser_.head_done() ? "the body did not arrive in time"
                                                   : "the request headers did not arrive in time");
  }
  close();
}

}  // namespace assay::http_internal
