// What is known of one HTTP request once it has ended: the common source of the access log, the spans and
// the metrics by tenant and outcome. Never holds what a prompt or an answer says. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/trace_context.h"

namespace assay {

// How a request ended.
enum class Outcome {
  kStop,             // every choice ended by itself
  kLength,           // a choice was cut by its limit
  kCancelled,        // the client left, or the server shut down
  kError,            // the server's fault
  kRefusedQueue,     // no room in the queue
  kRefusedDeadline,  // its time to first token could not be met
  kRefusedLimit,     // its tenant's limits
  kRefusedKey,       // no valid API key
  kInvalid,          // the client's fault
  kUnavailable,      // starting or draining
  kDone,             // answered; nothing was generated
  kCount
};
std::string_view name(Outcome outcome);  // "stop", "refused_queue", ...

// Of an answer with this status and OpenAI error code, when nothing was generated.
Outcome outcome_of(int status, std::string_view error_code);

// Seconds since the request was received. A phase that was not reached has no value.
struct RequestTimes {
  std::optional<double> submitted;    // to the engine: parsed, rendered and encoded
  std::optional<double> started;      // first sequence scheduled
  std::optional<double> first_token;  // of any choice
  std::optional<double> last_token;   // of all choices
  double ended = 0;                   // the answer was complete, or the client had left
};

// What a generation asked for and got.
struct GenerationFacts {
  std::string operation;  // "chat", "text_completion", ...: GenAI conventions; empty: not a generation
  std::string model;      // as the client named it
  std::string response_id;
  bool stream = false;
  int choices = 1;
  std::optional<int64_t> max_tokens;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int64_t> seed;
  std::string output_type;  // "text", "json"
  std::vector<std::string> finish_reasons;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
};

struct RequestFacts {
  std::string method;
  std::string route;  // the pattern; empty: none matched
  std::string request_id;
  std::string client;  // "127.0.0.1:51234"
  std::string tenant = "default";
  TraceContext own;  // this request's trace and span; `sampled` by the head decision
  SpanId caller;     // set: the span that the client's traceparent named
  std::string trace_state;
  int64_t received_unix_nanoseconds = 0;
  RequestTimes times;
  GenerationFacts generation;
  int status = 0;  // 499: the client left before its answer was complete
  std::string error_code;
  uint64_t body_bytes = 0;  // of the answer
  Outcome outcome = Outcome::kDone;
};

// The operation of a route by the GenAI conventions; empty: it does not generate.
std::string_view operation_of(std::string_view method, std::string_view route);

}  // namespace assay
