#include "http/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/build_info.h"
#include "base/clock.h"
#include "http/client_stream.h"
#include "http/url.h"

namespace assay {
namespace {

using http_internal::ClientStream;

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

Result<std::string> compose(const FetchRequest& request, const Url& url, bool same_origin) {
  if (!is_token(request.method)) {
    return fail(ErrorCode::kInvalidArgument, "method", "'{}' is not an HTTP method", request.method);
  }
  std::string text =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, url.target, url.host_header());
  for (const Header& field : request.headers) {
    if (!is_token(field.name) ||
        field.value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
      return fail(ErrorCode::kInvalidArgument, field.name, "not a valid header name or value");
    }
    // Credentials are for the origin they were given for.
    const bool secret =
        equals_ignoring_case(field.name, "Authorization") || equals_ignoring_case(field.name, "Cookie");
    if (!secret || same_origin) text += fmt::format("{}: {}\r\n", field.name, field.value);
  }
  if (!request.headers.find("User-Agent"))
    text += fmt::format("User-Agent: assay/{}\r\n", build_info().version);
  if (!request.headers.find("Accept")) text += "Accept: */*\r\n";
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    text += fmt::format("Content-Length: {}\r\n", request.body.size());
  }
  return text + "Connection: close\r\n\r\n" + request.body;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// One request on one connection.
class Attempt {
 public:
  Attempt(const FetchRequest& request, const FetchCallbacks& callbacks, const Stopwatch& clock)
      : request_(request), callbacks_(callbacks), clock_(clock) {}

  Result<FetchResponse> run(const Url& url, bool same_origin, bool may_redirect);

 private:
  // The time one more operation may take; kUnavailable when the total is used up.
  Result<double> allowance(double wanted, const Url& url) const;
  Result<void> receive(ClientStream& stream, const Url& url, bool may_redirect, FetchResponse& response);
  bool take_body(std::string_view bytes, FetchResponse& response, bool to_callback) const;

  const FetchRequest& request_;
  const FetchCallbacks& callbacks_;
  const Stopwatch& clock_;
};

Result<double> Attempt::allowance(double wanted, const Url& url) const {
  if (request_.total_timeout_seconds <= 0) return wanted;
  const double left = request_.total_timeout_seconds - clock_.seconds();
  if (left <= 0) {
    return fail(ErrorCode::kUnavailable, url.to_string(), "not answered within {} s",
                request_.total_timeout_seconds);
  }
  return std::min(wanted, left);
}

Result<FetchResponse> Attempt::run(const Url& url, bool same_origin, bool may_redirect) {
  ASSIGN_OR_RETURN(const std::string text, compose(request_, url, same_origin));
  ASSIGN_OR_RETURN(const double connect_seconds, allowance(request_.connect_timeout_seconds, url));
  ASSIGN_OR_RETURN(const auto stream, ClientStream::connect(url, request_.ca_file, connect_seconds));
  // A server may answer (413) and close before it has read everything: its answer counts, not the failed
  // write.
  std::optional<Error> write_error;
  for (size_t sent = 0; sent < text.size() && !write_error;) {
    ASSIGN_OR_RETURN(const double seconds, allowance(request_.idle_timeout_seconds, url));
    const auto n = stream->write_some(std::string_view(text).substr(sent), seconds);
    if (n) {
      sent += *n;
    } else {
      write_error = n.error();
    }
  }
  FetchResponse response;
  response.url = url.to_string();
  const auto received = receive(*stream, url, may_redirect, response);
  if (!received)
    return std::unexpected(write_error && response.status == 0 ? *write_error : received.error());
  return response;
}

bool Attempt::take_body(std::string_view bytes, FetchResponse& response, bool to_callback) const {
  if (to_callback) return callbacks_.on_body(bytes);
  response.body.append(bytes);
  return true;
}

Result<void> Attempt::receive(ClientStream& stream, const Url& url, bool may_redirect,
                              FetchResponse& response) {
  bool to_callback = false;
  ResponseParser parser({.head_bytes = 64 * 1024, .body_bytes = request_.max_body_bytes},
                        request_.method == "HEAD",
                        [&](std::string_view bytes) { return take_body(bytes, response, to_callback); });
  const std::string where = url.to_string();
  std::array<char, 64 * 1024> input;
  ParseStatus status = ParseStatus::kNeedMore;
  bool head_seen = false;
  while (status == ParseStatus::kNeedMore) {
    ASSIGN_OR_RETURN(const double seconds, allowance(request_.idle_timeout_seconds, url));
    ASSIGN_OR_RETURN(const size_t n, stream.read_some(input, seconds));
    status = n == 0 ? parser.feed_end() : parser.feed({input.data(), n});
    if (parser.head_done() && !head_seen) {
      head_seen = true;
      response.status = parser.head().status;
      response.headers = parser.head().headers;
      const bool followed = may_redirect && is_redirect(response.status) && response.headers.find("Location");
      if (followed) return {};  // its body does not matter
      if (callbacks_.on_head && !callbacks_.on_head(parser.head())) {
        return fail(ErrorCode::kCancelled, where, "stopped by the caller");
      }
      to_callback = static_cast<bool>(callbacks_.on_body);
      if (status == ParseStatus::kNeedMore) status = parser.feed({});
    }
  }
  if (status == ParseStatus::kDone) return {};
  if (parser.stopped()) return fail(ErrorCode::kCancelled, where, "stopped by the caller");
  const bool too_large = parser.failure().find("larger than") != std::string::npos;
  return fail(too_large ? ErrorCode::kResourceExhausted : ErrorCode::kNetwork, where, "{}", parser.failure());
}

}  // namespace

Result<FetchResponse> fetch(const FetchRequest& request, const FetchCallbacks& callbacks) {
  ASSIGN_OR_RETURN(const Url first, parse_url(request.url));
  Url url = first;
  const Stopwatch clock;
  const bool may_redirect =
      request.max_redirects > 0 && (request.method == "GET" || request.method == "HEAD");
  for (int hop = 0; hop <= request.max_redirects; ++hop) {
    Attempt attempt(request, callbacks, clock);
    ASSIGN_OR_RETURN(FetchResponse response, attempt.run(url, url.same_origin(first), may_redirect));
    const auto location = response.headers.find("Location");
    if (!may_redirect || !is_redirect(response.status) || !location) return response;
    auto next = resolve_url(url, *location);
    if (!next) return std::unexpected(next.error().within(url.to_string() + ": redirect"));
    if (url.https && !next->https) {
      return fail(ErrorCode::kNetwork, url.to_string(), "refused a redirect from https to {}",
                  next->to_string());
    }
    url = std::move(*next);
  }
  return fail(ErrorCode::kNetwork, request.url, "more than {} redirects", request.max_redirects);
}

Result<FetchResponse> fetch_events(const FetchRequest& request,
                                   const std::function<bool(const SseEvent&)>& on_event) {
  SseParser parser;
  bool is_stream = false;
  bool wants_more = true;
  std::optional<Error> parse_error;
  std::string other_body;
  FetchCallbacks callbacks;
  callbacks.on_head = [&](const ResponseHead& head) {
    const auto type = head.headers.find("Content-Type");
    is_stream = head.status == 200 && type && type->starts_with("text/event-stream");
    return true;
  };
  callbacks.on_body = [&](std::string_view bytes) {
    if (!is_stream) {
      other_body.append(bytes);
      return true;
    }
    const auto fed = parser.feed(bytes, [&](const SseEvent& event) {
      if (wants_more) wants_more = on_event(event);
    });
    if (!fed) parse_error = fed.error();
    return fed.has_value() && wants_more;
  };
  FetchRequest with_accept = request;
  if (!with_accept.headers.find("Accept")) with_accept.headers.add("Accept", "text/event-stream");
  auto response = fetch(with_accept, callbacks);
  if (parse_error) return std::unexpected(parse_error->within(request.url));
  if (response) response->body = std::move(other_body);
  return response;
}

}  // namespace assay
