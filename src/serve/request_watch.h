// Watches one HTTP request from received to done, and reports it once.
//
// An ObservedResponder stands between a handler and the connection: it sees the status, the size and the end
// of the answer. What only the handler knows (tenant, generation) is told to its watch. The report is made
// when the answer is complete, or when the last holder lets go of an answer that never will be.
// Thread safety: any thread. Cost: a short lock a call; nothing is done per token but in send().
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "http/server.h"
#include "serve/request_facts.h"

namespace assay {

class RequestWatch {
 public:
  explicit RequestWatch(RequestFacts known) : facts_(std::move(known)) {}

  double seconds() const { return clock_.seconds(); }  // since the request was received
  TraceContext trace() const;

  void set_tenant(std::string tenant);  // a name from the key file, never from the client
  // What is generated. Keeps the operation, which the route says.
  void describe(GenerationFacts generation);
  void mark_submitted();
  void mark_first_token();  // the first call counts
  void count_sequence(const Completion& completion, std::string_view finish_reason);

  // The facts as they stand, with status and end; the watch is over.
  RequestFacts conclude(int status, bool disconnected, std::string error_code, uint64_t body_bytes);

 private:
  Outcome outcome(int status, std::string_view error_code) const;

  const Stopwatch clock_;
  mutable std::mutex mutex_;
  RequestFacts facts_;
};

class ObservedResponder final : public Responder {
 public:
  using Report = std::function<void(const RequestFacts&)>;

  // `extra` headers go with every answer. `report` is called once.
  ObservedResponder(std::shared_ptr<Responder> inner, RequestFacts known, Headers extra, Report report);
  ~ObservedResponder() override;

  RequestWatch& watch() { return watch_; }

  void respond(HttpResponse response) override;
  void start_stream(int status, Headers headers) override;
  bool send(std::string_view bytes) override;
  void finish() override;
  void on_disconnect(std::function<void()> callback) override { inner_->on_disconnect(std::move(callback)); }
  bool disconnected() const override { return inner_->disconnected(); }
  void post(std::function<void()> work) override { inner_->post(std::move(work)); }

  // Reports now when the client has left: nothing of its request runs any more.
  void settle();

 private:
  void report(std::string error_code);

  const std::shared_ptr<Responder> inner_;
  const Headers extra_;
  RequestWatch watch_;
  std::mutex mutex_;
  Report report_;  // empty once called
  int status_ = 0;
  uint64_t body_bytes_ = 0;
};

}  // namespace assay
