// Internal: one request's answer on its way from any thread to the connection. Asio-free.
// The exchange outlives its connection when a responder is still held; then everything sent is dropped.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/server.h"

namespace assay::http_internal {

// What the exchange needs of its connection.
class ExchangeTransport {
 public:
  virtual ~ExchangeTransport() = default;
  virtual void post(std::function<void()> work) = 0;  // to the connection's I/O thread
  virtual void flush() = 0;                           // on the I/O thread: bytes are waiting
  virtual void give_up() = 0;                         // on the I/O thread: the client reads too slowly
  virtual bool is_draining() const = 0;               // any thread
};

struct ExchangeSettings {
  std::string method;
  std::string route;
  std::string request_id;
  bool http_1_0 = false;
  bool close_after = false;  // the client asked for it
  size_t max_queue_bytes = 0;
  Headers more_headers = {};  // for the answer, whoever gives it
};

class Exchange {
 public:
  Exchange(std::weak_ptr<ExchangeTransport> transport, ExchangeSettings settings);

  // Any thread.
  void respond(HttpResponse response);
  void start_stream(int status, Headers headers);
  bool send(std::string_view bytes);
  void finish();
  void on_disconnect(std::function<void()> callback);
  bool disconnected() const;
  void post(std::function<void()> work);
  void abandon(const ErrorMaker& make_error);

  // I/O thread.
  struct Ready {
    std::string bytes;
    bool complete = false;  // nothing follows
  };
  Ready take_ready();
  bool is_answered() const;  // a complete answer was handed over
  void close();              // the connection is gone; runs the callback when the answer was not complete
  void request_close();      // answer with Connection: close if the head is not written yet
  bool closes_after() const;
  AccessRecord access_record(bool cut) const;

 private:
  std::string head_text(int status, const Headers& headers, std::string_view length_header);
  void schedule_flush();  // with mutex_ held

  const std::weak_ptr<ExchangeTransport> transport_;
  const ExchangeSettings settings_;
  Stopwatch since_request_;

  mutable std::mutex mutex_;
  std::string pending_;
  std::function<void()> on_disconnect_;
  int status_ = 0;  // 0: not answered
  uint64_t body_bytes_ = 0;
  bool streaming_ = false;
  bool chunked_ = false;
  bool finished_ = false;
  bool closed_ = false;
  bool overflowed_ = false;
  bool flush_scheduled_ = false;
  bool close_after_ = false;
};

}  // namespace assay::http_internal
