#include "http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

namespace assay::http_internal {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Status = Channel::Status;

constexpr double kLingerSeconds = 2;
constexpr size_t kLingerBytes = size_t{64} << 20;  // enough for a client to notice its refused upload
constexpr size_t kReadBytes = 64 * 1024;
constexpr size_t kWriteBurstBytes = 256 * 1024;  // then others get their turn

// Of the I/O thread: between two calls nothing is kept in it.
std::span<char> shared_input() {
  thread_local std::array<char, kReadBytes> input;
  return input;
}

// As much of what a client sent as an answer may repeat.
std::string_view shown(std::string_view text) {
  return text.substr(0, 100);
}

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

Connection::Connection(std::shared_ptr<Runtime> runtime, Socket socket, uint64_t id,
                       std::shared_ptr<const TlsContext> tls)
    : runtime_(std::move(runtime)),
      socket_(std::move(socket)),
      deadline_(socket_.get_executor()),
      id_(id),
      secure_(tls != nullptr),
      parser_(runtime_->config.limits) {
  error_code error;
  socket_.set_option(asio::ip::tcp::no_delay(true), error);
  socket_.native_non_blocking(true, error);
  const auto endpoint = socket_.remote_endpoint(error);
  peer_ = fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
  const int descriptor = socket_.native_handle();
  channel_ = tls ? make_tls_channel(descriptor, *tls) : make_plain_channel(descriptor);
  if (tls) state_ = State::kGreeting;
}

Connection::~Connection() = default;

void Connection::start() {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    const ServerConfig& config = self->runtime_->config;
    if (self->runtime_->draining.load() || !self->channel_) return self->close();
    if (self->state_ == State::kGreeting) {
      self->set_deadline(Clock::now() + to_duration(config.tls_handshake_timeout_seconds));
      return self->shake_hands();
    }
    self->set_deadline(Clock::now() + to_duration(config.idle_timeout_seconds));
    self->read_some();
  });
}

void Connection::refuse(int status, std::string message) {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this(), status, message = std::move(message)] {
    // A client that waits for TLS could not read the answer, and agreeing on TLS is the dear part.
    if (self->secure_) return self->close();
    self->answer_failure(status, message);
  });
}

void Connection::begin_drain() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::kIdle || self->state_ == State::kGreeting) self->close();
  });
}

void Connection::cut() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void Connection::post(std::function<void()> work) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), work = std::move(work)] { work(); });
}

// --- waiting and reading ---

void Connection::wait_for(Status wanted, void (Connection::*next)()) {
  const auto kind = wanted == Status::kWantsWrite ? Socket::wait_write : Socket::wait_read;
  socket_.async_wait(kind, [self = shared_from_this(), next](const error_code& error) {
    if (self->state_ == State::kClosed || error == asio::error::operation_aborted) return;
    (self.get()->*next)();  // an error shows itself there
  });
}

void Connection::shake_hands() {
  const Channel::Outcome outcome = channel_->shake_hands();
  switch (outcome.status) {
    case Status::kWantsRead:
    case Status::kWantsWrite:
      return wait_for(outcome.status, &Connection::shake_hands);
    case Status::kDone:
      state_ = State::kIdle;
      set_deadline(Clock::now() + to_duration(runtime_->config.idle_timeout_seconds));
      return read_now();  // the first request may have come along
    case Status::kPlainText:
      ++runtime_->failed_handshakes;
      channel_ = make_plain_channel(socket_.native_handle());
      return answer_failure(400, "this port speaks TLS: use https");
    case Status::kEnded:
    case Status::kFailed:
      ++runtime_->failed_handshakes;
      return close();
  }
}

void Connection::read_some() {
  if (reading_ || input_ended_ || state_ == State::kClosed) return;
  reading_ = true;
  if (channel_->has_pending()) {
    // Through the queue, so that one client's flood does not keep others waiting.
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->read_now(); });
  } else {
    wait_for(Status::kWantsRead, &Connection::read_now);
  }
}

void Connection::read_now() {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (state_ == State::kLingering) return discard_now();
  const std::span<char> input = shared_input();
  const Channel::Outcome outcome = channel_->read(input);
  switch (outcome.status) {
    case Status::kDone:
      return on_bytes({input.data(), outcome.n});
    case Status::kWantsRead:
    case Status::kWantsWrite:
      reading_ = true;
      return wait_for(outcome.status, &Connection::read_now);
    case Status::kEnded:
      return on_read_end(true);
    case Status::kPlainText:
    case Status::kFailed:
      return on_read_end(false);
  }
}

void Connection::on_bytes(std::string_view bytes) {
  parser_.append(bytes);
  if (state_ == State::kBusy) {
    // Pipelined bytes wait in the parser. Reading goes on, to notice a client that leaves, until they outgrow
    // a head.
    if (parser_.buffered_bytes() < runtime_->config.limits.head_bytes) read_some();
    return;
  }
  if (state_ == State::kReading && parser_.head_done()) allow_body_time(bytes.size());
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

// Below TLS: what is thrown away need not be decrypted.
void Connection::discard_now() {
  const std::span<char> input = shared_input();
  error_code error;
  const size_t n = socket_.read_some(asio::buffer(input.data(), input.size()), error);
  if (error && error != asio::error::would_block) return close();
  lingered_bytes_ += n;
  if (lingered_bytes_ > kLingerBytes) return close();
  reading_ = true;
  wait_for(Status::kWantsRead, &Connection::read_now);
}

void Connection::advance() {
  if (state_ == State::kIdle && parser_.buffered_bytes() > 0) {
    state_ = State::kReading;
    set_deadline(Clock::now() + to_duration(runtime_->config.head_timeout_seconds));
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
  if (parser_.head_done() && !had_head) {
    const Clock::time_point now = Clock::now();
    body_end_ = now + to_duration(runtime_->config.body_total_seconds);
    set_deadline(std::min(body_end_, now + to_duration(runtime_->config.body_timeout_seconds)));
  }
  if (!account_body()) {
    return answer_failure(503, "the server holds as many request bodies as it may", "too_many_bodies");
  }
  if (parser_.head_done() && parser_.expects_continue() && !continue_sent_) send_continue();
  read_some();
}

// Many bodies below the limit of one are still too many together.
bool Connection::account_body() {
  const uint64_t held = state_ == State::kReading && parser_.head_done() ? parser_.held_bytes() : 0;
  const uint64_t before = std::exchange(accounted_bytes_, held);
  const uint64_t total = runtime_->held_body_bytes.fetch_add(held - before) + (held - before);
  return held <= before || total <= runtime_->config.max_held_body_bytes;
}

void Connection::allow_body_time(size_t arrived) {
  const uint64_t rate = runtime_->config.min_body_bytes_per_second;
  if (rate == 0 || !deadline_.when()) return;
  const auto more = to_duration(static_cast<double>(arrived) / static_cast<double>(rate));
  set_deadline(std::min(body_end_, *deadline_.when() + more));
}

// Nothing else is being written while a request is read; its answer waits for this in flush().
void Connection::send_continue() {
  continue_sent_ = true;
  output_ = "HTTP/1.1 100 Continue\r\n\r\n";
  output_written_ = 0;
  output_completes_ = false;
  writing_ = true;
  write_now();
}

void Connection::dispatch() {
  const bool keeps_alive = parser_.keeps_alive();
  HttpRequest request = parser_.take();
  account_body();
  continue_sent_ = false;
  state_ = State::kBusy;
  deadline_.clear();
  request.peer = peer_;
  const auto id = request.headers.find("X-Request-Id");
  request.request_id = id && is_valid_request_id(*id) ? std::string(*id) : make_request_id();
  Router::Match match = runtime_->router.find(request.method, request.path);
  CorsVerdict verdict = judge_origin(runtime_->config.cors, request, secure_);
  const bool closes = !keeps_alive || runtime_->draining.load() || in_row_ >= runtime_->config.max_pipelined;
  exchange_ = std::make_shared<Exchange>(
      weak_from_this(),
      ExchangeSettings{request.method, match.pattern, request.request_id, request.http_1_0, closes,
                       runtime_->config.max_stream_queue_bytes, std::move(verdict.headers)});
  if (verdict.preflight) {
    exchange_->respond(std::move(*verdict.preflight));
  } else if (verdict.refused) {
    exchange_->respond(make_error(403, "pages of this origin may not use the server"));
  } else {
    handle(std::move(request), std::move(match));
  }
  if (state_ != State::kClosed && parser_.buffered_bytes() < runtime_->config.limits.head_bytes) read_some();
}

void Connection::handle(HttpRequest request, Router::Match match) {
  switch (match.kind) {
    case Router::Match::Kind::kFound: {
      request.path_parameters = std::move(match.parameters);
      auto responder = std::make_shared<ExchangeResponder>(exchange_, runtime_);
      try {
        runtime_->handlers[match.handler](std::move(request), responder);
      } catch (const std::exception& failure) {
        responder->respond(make_error(500, fmt::format("internal error: {}", failure.what())));
      }
      return;
    }
    case Router::Match::Kind::kMethodNotAllowed: {
      HttpResponse response =
          make_error(405, fmt::format("{} does not support {}; allowed: {}", shown(request.path),
                                      shown(request.method), match.allow));
      response.headers.add("Allow", match.allow);
      return exchange_->respond(std::move(response));
    }
    case Router::Match::Kind::kBadPath:
      return exchange_->respond(make_error(400, "the path has a '%' without two hexadecimal digits"));
    case Router::Match::Kind::kNotFound:
      return exchange_->respond(
          make_error(404, fmt::format("no such route: {} {}", shown(request.method), shown(request.path))));
  }
}

HttpResponse Connection::make_error(int status, std::string_view message, std::string_view code) const {
  return runtime_->config.make_error(status, code.empty() ? error_code_of(status) : code, message);
}

// The stream of requests is broken or unwelcome: one answer, then the end.
void Connection::answer_failure(int status, std::string_view message, std::string_view code) {
  if (state_ == State::kClosed) return;
  state_ = State::kBusy;
  account_body();
  set_deadline(Clock::now() + to_duration(runtime_->config.write_timeout_seconds));
  input_ended_ = true;  // nothing more is parsed; linger() reads what is left
  exchange_ = std::make_shared<Exchange>(
      weak_from_this(), ExchangeSettings{"", "", make_request_id(), false, true, size_t{1} << 20});
  exchange_->respond(make_error(status, message, code));
  parser_.discard();
}

// --- writing ---

void Connection::flush() {
  if (writing_ || state_ != State::kBusy || !exchange_) return;
  writing_ = true;
  write_now();
}

// Writes until nothing is left or the client must be waited for.
void Connection::write_now() {
  size_t burst_bytes = 0;
  while (state_ != State::kClosed) {
    if (output_written_ < output_.size()) {
      write_output(burst_bytes);
      if (output_written_ < output_.size()) return;
    }
    output_ = {};
    output_written_ = 0;
    if (std::exchange(behind_, false)) deadline_.clear();
    const bool completed = std::exchange(output_completes_, false);
    if (completed || state_ != State::kBusy || !exchange_) {
      writing_ = false;
      if (completed) complete();
      return;
    }
    Exchange::Ready ready = exchange_->take_ready();
    output_ = std::move(ready.bytes);
    output_completes_ = ready.complete;
    if (output_.empty() && !output_completes_) {
      writing_ = false;
      return;
    }
  }
}

// Leaves bytes over when write_now() will be called again, or the connection has been closed.
void Connection::write_output(size_t& burst_bytes) {
  while (output_written_ < output_.size()) {
    if (burst_bytes >= kWriteBurstBytes) {
      asio::post(socket_.get_executor(), [self = shared_from_this()] { self->write_now(); });
      return;
    }
    const Channel::Outcome outcome = channel_->write(std::string_view(output_).substr(output_written_));
    switch (outcome.status) {
      case Status::kDone:
        output_written_ += outcome.n;
        burst_bytes += outcome.n;
        allow_write_time(outcome.n);
        break;
      case Status::kWantsRead:
      case Status::kWantsWrite:
        return on_blocked(outcome.status);
      case Status::kEnded:
      case Status::kPlainText:
      case Status::kFailed:
        writing_ = false;
        return close();
    }
  }
}

void Connection::on_blocked(Status wanted) {
  // While a request is read ("100 Continue") its own deadline holds.
  if (!behind_ && state_ == State::kBusy) {
    behind_ = true;
    set_deadline(Clock::now() + to_duration(runtime_->config.write_timeout_seconds));
  }
  wait_for(wanted, &Connection::write_now);
}

// Progress buys time, but not more than the timeout and not faster than the least rate.
void Connection::allow_write_time(size_t taken) {
  if (!behind_ || !deadline_.when()) return;
  const uint64_t rate = runtime_->config.min_write_bytes_per_second;
  const auto latest = Clock::now() + to_duration(runtime_->config.write_timeout_seconds);
  if (rate == 0) return set_deadline(latest);
  const auto more = to_duration(static_cast<double>(taken) / static_cast<double>(rate));
  set_deadline(std::min(latest, *deadline_.when() + more));
}

void Connection::complete() {
  const std::shared_ptr<Exchange> done = std::exchange(exchange_, nullptr);
  if (runtime_->config.on_access) runtime_->config.on_access(done->access_record(false));
  if (done->closes_after() || input_ended_ || runtime_->draining.load()) return linger();
  state_ = State::kIdle;
  in_row_ = parser_.buffered_bytes() > 0 ? in_row_ + 1 : 0;
  set_deadline(Clock::now() + to_duration(runtime_->config.idle_timeout_seconds));
  // Through the queue, so that many pipelined requests do not nest their calls.
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::kIdle) self->advance();
  });
}

void Connection::linger() {
  channel_->end();
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  state_ = State::kLingering;
  input_ended_ = false;
  set_deadline(Clock::now() + to_duration(kLingerSeconds));
  read_some();
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  account_body();
  deadline_.stop();
  channel_.reset();
  error_code ignored;
  socket_.close(ignored);
  if (const std::shared_ptr<Exchange> open = std::exchange(exchange_, nullptr)) {
    open->close();
    if (runtime_->config.on_access) runtime_->config.on_access(open->access_record(true));
  }
  runtime_->on_closed(id_);
}

// --- time ---

void Connection::set_deadline(Clock::time_point when) {
  deadline_.set(when, shared_from_this(), [this] { on_deadline(); });
}

void Connection::on_deadline() {
  if (state_ == State::kClosed) return;
  if (state_ == State::kGreeting) ++runtime_->failed_handshakes;
  if (state_ == State::kReading || state_ == State::kBusy) ++runtime_->timed_out;
  if (state_ == State::kReading) {
    return answer_failure(408, parser_.head_done() ? "the body did not arrive in time"
                                                   : "the request headers did not arrive in time");
  }
  close();
}

}  // namespace assay::http_internal
