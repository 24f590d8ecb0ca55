#include "http/exchange.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <utility>

namespace assay::http_internal {
namespace {

// IMF-fixdate, RFC 9110 5.6.7; independent of the locale.
std::string http_date() {
  static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays.at(static_cast<size_t>(utc.tm_wday)),
                     utc.tm_mday, kMonths.at(static_cast<size_t>(utc.tm_mon)), utc.tm_year + 1900,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

bool has_no_body(int status) {
  return status / 100 == 1 || status == 204 || status == 304;
}

}  // namespace

Exchange::Exchange(std::weak_ptr<ExchangeTransport> transport, ExchangeSettings settings)
    : transport_(std::move(transport)), settings_(std::move(settings)), close_after_(settings_.close_after) {}

std::string Exchange::head_text(int status, const Headers& headers, std::string_view length_header) {
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", status, reason_phrase(status), http_date());
  for (const Headers* fields : {&headers, &settings_.more_headers}) {
    for (const Header& field : *fields) text += fmt::format("{}: {}\r\n", field.name, field.value);
  }
  text += fmt::format("X-Request-Id: {}\r\n", settings_.request_id);
  if (!length_header.empty()) text.append(length_header).append("\r\n");
  if (const auto transport = transport_.lock(); transport && transport->is_draining()) close_after_ = true;
  // HTTP/1.0 clients that asked to keep the connection must hear that it is kept.
  if (close_after_) {
    text += "Connection: close\r\n";
  } else if (settings_.http_1_0) {
    text += "Connection: keep-alive\r\n";
  }
  return text + "\r\n";
}

void Exchange::schedule_flush() {
  if (flush_scheduled_ || closed_) return;
  const auto transport = transport_.lock();
  if (!transport) return;
  flush_scheduled_ = true;
  transport->post([transport] { transport->flush(); });
}

void Exchange::respond(HttpResponse response) {
  const std::scoped_lock lock(mutex_);
  if (status_ != 0 || closed_) return;
  status_ = response.status;
  const std::string length =
      has_no_body(response.status) ? std::string() : fmt::format("Content-Length: {}", response.body.size());
  pending_ = head_text(response.status, response.headers, length);
  if (settings_.method != "HEAD" && !has_no_body(response.status)) {
    pending_ += response.body;
    body_bytes_ = response.body.size();
  }
  finished_ = true;
  on_disconnect_ = nullptr;
  schedule_flush();
}

void Exchange::start_stream(int status, Headers headers) {
  const std::scoped_lock lock(mutex_);
  if (status_ != 0 || closed_) return;
  status_ = status;
  streaming_ = true;
  chunked_ = !settings_.http_1_0;
  if (!chunked_) close_after_ = true;  // the end of the body is the end of the connection
  pending_ = head_text(status, headers, chunked_ ? "Transfer-Encoding: chunked" : "");
  schedule_flush();
}

bool Exchange::send(std::string_view bytes) {
  const std::scoped_lock lock(mutex_);
  if (closed_ || overflowed_ || !streaming_ || finished_) return false;
  if (bytes.empty() || settings_.method == "HEAD") return true;
  if (pending_.size() + bytes.size() > settings_.max_queue_bytes) {
    overflowed_ = true;
    pending_.clear();
    if (const auto transport = transport_.lock()) transport->post([transport] { transport->give_up(); });
    return false;
  }
  body_bytes_ += bytes.size();
  if (chunked_) fmt::format_to(std::back_inserter(pending_), "{:x}\r\n", bytes.size());
  pending_.append(bytes);
  if (chunked_) pending_.append("\r\n");
  schedule_flush();
  return true;
}

void Exchange::finish() {
  const std::scoped_lock lock(mutex_);
  if (closed_ || overflowed_ || !streaming_ || finished_) return;
  if (chunked_ && settings_.method != "HEAD") pending_.append("0\r\n\r\n");
  finished_ = true;
  on_disconnect_ = nullptr;
  schedule_flush();
}

void Exchange::on_disconnect(std::function<void()> callback) {
  {
    const std::scoped_lock lock(mutex_);
    if (finished_) return;
    if (!closed_) {
      on_disconnect_ = std::move(callback);
      return;
    }
  }
  callback();
}

bool Exchange::disconnected() const {
  const std::scoped_lock lock(mutex_);
  return (closed_ && !finished_) || overflowed_;
}

void Exchange::post(std::function<void()> work) {
  const std::scoped_lock lock(mutex_);
  if (closed_) return;
  if (const auto transport = transport_.lock()) transport->post(std::move(work));
}

void Exchange::abandon(const ErrorMaker& make_error) {
  bool streaming = false;
  {
    const std::scoped_lock lock(mutex_);
    if (finished_ || closed_) return;
    streaming = streaming_;
  }
  if (!streaming) {
    respond(make_error(500, error_code_of(500), "the request was dropped without an answer"));
    return;
  }
  // A stream without its end must not look complete: cut the connection.
  const std::scoped_lock lock(mutex_);
  if (closed_) return;
  if (const auto transport = transport_.lock()) transport->post([transport] { transport->give_up(); });
}

Exchange::Ready Exchange::take_ready() {
  const std::scoped_lock lock(mutex_);
  flush_scheduled_ = false;
  return {std::exchange(pending_, {}), finished_};
}

bool Exchange::is_answered() const {
  const std::scoped_lock lock(mutex_);
  return finished_;
}

void Exchange::close() {
  std::function<void()> callback;
  {
    const std::scoped_lock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    pending_.clear();
    callback = std::exchange(on_disconnect_, nullptr);
  }
  if (callback) callback();
}

void Exchange::request_close() {
  const std::scoped_lock lock(mutex_);
  close_after_ = true;
}

bool Exchange::closes_after() const {
  const std::scoped_lock lock(mutex_);
  return close_after_;
}

AccessRecord Exchange::access_record(bool cut) const {
  const std::scoped_lock lock(mutex_);
  return {settings_.method,
          settings_.route,
          settings_.request_id,
          status_ == 0 ? 499 : status_,
          body_bytes_,
          since_request_.seconds(),
          cut};
}

}  // namespace assay::http_internal
