// Incremental HTTP/1.1 message parsing: bytes in, cut anywhere; requests or responses out. Pure (no sockets),
// so it can be fuzzed. The grammar is Boost.Beast's; on top of it: limits on the whole head, on its fields
// and on chunk headers and trailers, and refusal of what invites request smuggling (any Transfer-Encoding but
// "chunked", missing or doubled Host, doubled Content-Length, folded lines, bare CR or LF, NUL). A beginning
// that cannot become a request fails at once, without waiting for its end. Source: RFC 9112. Not thread safe.
// Memory: at most head limit + body limit + one read; next to nothing between messages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace assay {

struct ParserLimits {
  uint32_t head_bytes = 32 * 1024;
  uint64_t body_bytes = uint64_t{16} << 20;
  int max_fields = 100;  // header fields of a request
};

enum class ParseStatus { kNeedMore, kDone, kFailed };

struct ParseFailure {
  int status = 400;     // what a server answers
  std::string message;  // what is wrong
};

class RequestParser {
 public:
  explicit RequestParser(ParserLimits limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  void append(std::string_view bytes) { buffer_.append(bytes); }
  // Goes as far as the bytes allow. After kFailed the connection must be closed.
  ParseStatus parse();
  size_t buffered_bytes() const { return buffer_.size(); }  // not consumed yet: pipelined requests
  // What is held at the moment, for accounts of memory.
  size_t held_bytes() const { return buffer_.capacity() + request_.body.capacity(); }
  bool head_done() const { return head_done_; }
  bool expects_continue() const { return expects_continue_; }
  bool keeps_alive() const { return keeps_alive_; }
  const ParseFailure& failure() const { return failure_; }

  // After kDone: the message (peer, request_id and path_parameters are not filled). Ready for the next one
  // then.
  HttpRequest take();
  void discard();  // frees what is held of a message that nobody wants any more; failure() stays

 private:
  struct Beast;
  ParseStatus refuse(int status, std::string message);
  // Judges the head before Beast sees it: kDone when all of it is there and may be parsed.
  ParseStatus check_head();
  ParseStatus advance();
  ParseStatus finish_head();
  ParseStatus check_framing();

  ParserLimits limits_;
  std::string buffer_;
  std::unique_ptr<Beast> beast_;  // null between messages
  HttpRequest request_;
  size_t scanned_ = 0;  // bytes of an incomplete head that hold no end of it
  bool passed_empty_line_ = false;
  bool head_done_ = false;
  bool in_chunk_header_ = false;  // the last step wanted more of a chunk header or trailer
  bool expects_continue_ = false;
  bool keeps_alive_ = false;
  ParseFailure failure_;
};

struct ResponseHead {
  int status = 0;
  Headers headers;
  std::optional<uint64_t> content_length;
};

class ResponseParser {
 public:
  // `on_body` gets body bytes as they arrive; returning false stops the parse (kFailed, stopped() is true).
  ResponseParser(ParserLimits limits, bool is_head_request, std::function<bool(std::string_view)> on_body);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  // Consumes all of `bytes` that belong to this response; stops after the head once (kNeedMore with
  // head_done()), so that the caller can look at it before the body arrives. Call again with empty bytes to
  // go on.
  ParseStatus feed(std::string_view bytes);
  ParseStatus feed_end();  // the peer closed: the end of the message, or a failure
  bool head_done() const { return head_done_; }
  bool stopped() const { return stopped_; }
  const ResponseHead& head() const { return head_; }
  const std::string& failure() const { return failure_; }

 private:
  struct Beast;
  ParseStatus refuse(std::string message);
  void start();

  ParserLimits limits_;
  bool is_head_request_;
  std::function<bool(std::string_view)> on_body_;
  std::string buffer_;
  std::unique_ptr<Beast> beast_;
  ResponseHead head_;
  bool head_done_ = false;
  bool in_chunk_header_ = false;  // the last step wanted more of a chunk header or trailer
  bool stopped_ = false;
  std::string failure_;
};

}  // namespace assay
