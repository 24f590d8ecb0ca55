// A small blocking HTTP/1.1 client: one request, one connection, http or https with certificate and host name
// verification, redirects, bounded in time and memory; the body is kept, or streamed to a callback.
// Thread safety: fetch() may run in parallel. Failure: kInvalidArgument (URL, header), kNetwork (unreachable,
// broken answer, certificate), kUnavailable (timed out), kCancelled (a callback said so), kResourceExhausted
// (too large). An answer with status 4xx or 5xx is an answer, not an error.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"
#include "http/message_parser.h"
#include "http/sse.h"

namespace assay {

struct FetchRequest {
  std::string url;
  std::string method = "GET";
  Headers headers;  // e.g. {"Range", "bytes=100-"}; Host, Content-Length and Connection are added
  std::string body;
  double connect_timeout_seconds = 10;  // name, connection and TLS handshake
  double idle_timeout_seconds = 60;     // longest wait for the next byte
  double total_timeout_seconds = 0;     // of everything; 0: no limit
  uint64_t max_body_bytes = uint64_t{64} << 20;
  int max_redirects = 5;  // of GET and HEAD; 0 returns the 3xx answer itself. Never from https to http
  std::string ca_file;    // PEM file of further trusted authorities
};

struct FetchResponse {
  int status = 0;
  Headers headers;
  std::string body;  // empty when a callback took it
  std::string url;   // after redirects
};

struct FetchCallbacks {
  // Each returns false to stop (kCancelled).
  std::function<bool(const ResponseHead&)> on_head;  // of the final answer
  std::function<bool(std::string_view)> on_body;     // takes the body instead of FetchResponse
};

Result<FetchResponse> fetch(const FetchRequest& request, const FetchCallbacks& callbacks = {});

// The answer as server-sent events, delivered as they arrive. When the status is not 200 or the type is not
// text/event-stream, nothing is delivered and the body is returned.
Result<FetchResponse> fetch_events(const FetchRequest& request,
                                   const std::function<bool(const SseEvent&)>& on_event);

}  // namespace assay
