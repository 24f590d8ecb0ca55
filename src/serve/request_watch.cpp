#include "serve/request_watch.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <utility>

namespace assay {
namespace {

constexpr size_t kErrorBodyLimit = 4096;  // of our own error objects

// The code of an OpenAI error object.
std::string error_code_of(const HttpResponse& response) {
  if (response.status < 400 || response.body.size() > kErrorBodyLimit) return {};
  boost::json::error_code failure;
  const boost::json::value body = boost::json::parse(response.body, failure);
  if (failure) return {};
  const boost::json::value* code = body.find_pointer("/error/code", failure);
  return code != nullptr && code->is_string() ? std::string(code->get_string()) : std::string();
}

std::optional<double> earlier(std::optional<double> a, double b) {
  return a ? std::min(*a, b) : b;
}

std::optional<double> later(std::optional<double> a, double b) {
  return a ? std::max(*a, b) : b;
}

}  // namespace

TraceContext RequestWatch::trace() const {
  const std::scoped_lock lock(mutex_);
  return facts_.own;
}

void RequestWatch::set_tenant(std::string tenant) {
  const std::scoped_lock lock(mutex_);
  facts_.tenant = std::move(tenant);
}

void RequestWatch::describe(GenerationFacts generation) {
  const std::scoped_lock lock(mutex_);
  generation.operation = std::move(facts_.generation.operation);
  facts_.generation = std::move(generation);
}

void RequestWatch::mark_submitted() {
  const double now = seconds();
  const std::scoped_lock lock(mutex_);
  facts_.times.submitted = earlier(facts_.times.submitted, now);
}

void RequestWatch::mark_first_token() {
  const double now = seconds();
  const std::scoped_lock lock(mutex_);
  if (!facts_.times.first_token) facts_.times.first_token = now;
}

void RequestWatch::count_sequence(const Completion& completion, std::string_view finish_reason) {
  const double now = seconds();
  const std::scoped_lock lock(mutex_);
  const Usage& usage = completion.usage;
  GenerationFacts& generation = facts_.generation;
  generation.prompt_tokens += usage.prompt_tokens;
  generation.cached_tokens += usage.cached_prompt_tokens;
  generation.output_tokens += usage.completion_tokens;
  generation.finish_reasons.emplace_back(finish_reason);
  RequestTimes& times = facts_.times;
  if (!times.submitted || usage.completion_tokens == 0) return;
  // A sequence may end with its first token, which is then never delivered.
  const double started = *times.submitted + usage.queue_seconds;
  const double first = std::min(started + usage.prefill_seconds, now);
  times.started = earlier(times.started, std::min(started, now));
  times.first_token = earlier(times.first_token, first);
  times.last_token = later(times.last_token, std::min(first + usage.decode_seconds, now));
}

Outcome RequestWatch::outcome(int status, std::string_view error_code) const {
  const std::vector<std::string>& reasons = facts_.generation.finish_reasons;
  const auto any = [&](std::string_view reason) {
    return std::ranges::find(reasons, reason) != reasons.end();
  };
  if (status == 499) return Outcome::kCancelled;
  if (status >= 400) return outcome_of(status, error_code);
  if (any("error")) return Outcome::kError;
  if (any("cancelled")) return Outcome::kCancelled;
  if (any("length")) return Outcome::kLength;
  return reasons.empty() ? Outcome::kDone : Outcome::kStop;
}

RequestFacts RequestWatch::conclude(int status, bool disconnected, std::string error_code,
                                    uint64_t body_bytes) {
  const double now = seconds();
  const std::scoped_lock lock(mutex_);
  facts_.times.ended = now;
  facts_.status = disconnected ? 499 : status == 0 ? 500 : status;
  facts_.error_code = std::move(error_code);
  facts_.body_bytes = body_bytes;
  facts_.outcome = outcome(facts_.status, facts_.error_code);
  return facts_;
}

ObservedResponder::ObservedResponder(std::shared_ptr<Responder> inner, RequestFacts known, Headers extra,
                                     Report report)
    : inner_(std::move(inner)),
      extra_(std::move(extra)),
      watch_(std::move(known)),
      report_(std::move(report)) {}

ObservedResponder::~ObservedResponder() {
  report({});
}

void ObservedResponder::respond(HttpResponse response) {
  for (const Header& header : extra_) response.headers.set(header.name, header.value);
  {
    const std::scoped_lock lock(mutex_);
    if (status_ == 0) {
      status_ = response.status;
      body_bytes_ = response.body.size();
    }
  }
  std::string code = error_code_of(response);
  inner_->respond(std::move(response));
  report(std::move(code));
}

void ObservedResponder::start_stream(int status, Headers headers) {
  for (const Header& header : extra_) headers.set(header.name, header.value);
  {
    const std::scoped_lock lock(mutex_);
    if (status_ == 0) status_ = status;
  }
  inner_->start_stream(status, std::move(headers));
}

bool ObservedResponder::send(std::string_view bytes) {
  {
    const std::scoped_lock lock(mutex_);
    body_bytes_ += bytes.size();
  }
  return inner_->send(bytes);
}

void ObservedResponder::finish() {
  inner_->finish();
  report({});
}

void ObservedResponder::settle() {
  if (inner_->disconnected()) report({});
}

void ObservedResponder::report(std::string error_code) {
  Report reporting;
  int status = 0;
  uint64_t body_bytes = 0;
  {
    const std::scoped_lock lock(mutex_);
    reporting = std::exchange(report_, nullptr);
    status = status_;
    body_bytes = body_bytes_;
  }
  if (!reporting) return;
  reporting(watch_.conclude(status, inner_->disconnected(), std::move(error_code), body_bytes));
}

}  // namespace assay
