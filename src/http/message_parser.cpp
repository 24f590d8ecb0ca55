#include "http/message_parser.h"

#include "http/asio.h"
// Keep Beast in this one file: it costs many seconds of compile time.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/parser.hpp>

namespace assay {
namespace {

namespace bhttp = boost::beast::http;
using boost::system::error_code;

// Hands body bytes to a function instead of reserving what Content-Length claims.
struct SinkBody {
  using value_type = std::function<bool(std::string_view)>;

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(bhttp::header<is_request, Fields>&, value_type& sink) : sink_(sink) {}
    void init(const boost::optional<std::uint64_t>&, error_code& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& error) {
      size_t total = 0;
      error = {};
      for (auto it = boost::asio::buffer_sequence_begin(buffers);
           it != boost::asio::buffer_sequence_end(buffers); ++it) {
        const boost::asio::const_buffer piece = *it;
        total += piece.size();
        if (piece.size() > 0 && !sink_({static_cast<const char*>(piece.data()), piece.size()})) {
          error = boost::asio::error::operation_aborted;
          return total;
        }
      }
      return total;
    }
    void finish(error_code& error) { error = {}; }

   private:
    value_type& sink_;
  };
};

// Beast asserts that it sees the whole of "0\r\n\r\n" when it comes back to a last chunk that was cut. From
// inside a chunk header or trailer a message never ends in less, so waiting for that many bytes costs
// nothing.
constexpr size_t kLastChunkBytes = 5;

ParseFailure describe(const error_code& error, const ParserLimits& limits) {
  if (error == bhttp::error::body_limit) {
    return {413, fmt::format("the body is larger than {} bytes", limits.body_bytes)};
  }
  if (error == bhttp::error::header_limit) {
    return {431, fmt::format("the request line and headers are larger than {} bytes", limits.head_bytes)};
  }
  if (error == bhttp::error::bad_version) return {400, "expected HTTP/1.0 or HTTP/1.1"};
  return {400, "malformed HTTP message: " + error.message()};
}

bool is_token_character(char c) {  // RFC 9110 5.6.2
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// The characters of uri-host [":" port] (RFC 9110 7.2); not its grammar.
bool is_host(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~%!$&'()*+,;=:[]").find(c) != std::string_view::npos;
  });
}

// What Beast lets pass or does not say while the end of the head is missing; `seen` bytes were judged before.
std::optional<std::string> find_broken_line(std::string_view head, size_t seen) {
  for (size_t i = seen; i < head.size(); ++i) {
    if (head[i] == '\0') return "the request head holds a NUL byte";
    if (head[i] == '\n' && (i == 0 || head[i - 1] != '\r')) return "a line ends with LF alone; expected CRLF";
    if (head[i] == '\r' && i + 1 < head.size() && head[i + 1] != '\n') return "a line holds CR without LF";
    const bool line_starts = i >= 2 && head[i - 1] == '\n';
    if (line_starts && (head[i] == ' ' || head[i] == '\t'))
      return "folded header lines are obsolete and refused";
  }
  const size_t line_end = head.find("\r\n");
  if (line_end == std::string_view::npos) return std::nullopt;
  const std::string_view line = head.substr(0, line_end);
  if (!line.ends_with(" HTTP/1.1") && !line.ends_with(" HTTP/1.0")) {
    return "expected a request line that ends with HTTP/1.1 or HTTP/1.0";
  }
  return std::nullopt;
}

template <class Fields>
Headers copy_fields(const Fields& fields) {
  Headers headers;
  for (const auto& field : fields) {
    headers.add(std::string_view(field.name_string().data(), field.name_string().size()),
                std::string_view(field.value().data(), field.value().size()));
  }
  return headers;
}

}  // namespace

struct RequestParser::Beast {
  bhttp::parser<true, SinkBody> parser;

  Beast(const ParserLimits& limits, std::string& body) {
    parser.header_limit(limits.head_bytes);
    parser.body_limit(limits.body_bytes);
    parser.eager(false);
    parser.get().body() = [&body](std::string_view bytes) {
      body.append(bytes);
      return true;
    };
  }
};

RequestParser::RequestParser(ParserLimits limits) : limits_(limits) {}
RequestParser::~RequestParser() = default;

ParseStatus RequestParser::refuse(int status, std::string message) {
  failure_ = {status, std::move(message)};
  return ParseStatus::kFailed;
}

ParseStatus RequestParser::parse() {
  if (failure_.message.size() > 0) return ParseStatus::kFailed;
  if (!head_done_) {
    const ParseStatus head = check_head();
    if (head != ParseStatus::kDone) return head;
  }
  if (!beast_) beast_ = std::make_unique<Beast>(limits_, request_.body);
  return advance();
}

ParseStatus RequestParser::check_head() {
  // An empty line before a request is passed over once (RFC 9112 2.2).
  if (!passed_empty_line_ && scanned_ == 0 && buffer_.starts_with("\r\n")) {
    passed_empty_line_ = true;
    buffer_.erase(0, 2);
  }
  if (buffer_.empty()) return ParseStatus::kNeedMore;
  if (buffer_ != "\r" && !is_token_character(buffer_.front())) {
    return refuse(400, "expected an HTTP request, found other bytes");
  }
  const size_t end = buffer_.find("\r\n\r\n", scanned_);
  const std::string_view head = std::string_view(buffer_).substr(0, end);
  const size_t least_bytes = end == std::string::npos ? buffer_.size() + 1 : end + 4;
  if (least_bytes > limits_.head_bytes) {
    return refuse(431,
                  fmt::format("the request line and headers are larger than {} bytes", limits_.head_bytes));
  }
  if (auto problem = find_broken_line(head, scanned_)) return refuse(400, std::move(*problem));
  if (end == std::string::npos) {
    scanned_ = buffer_.size() < 3 ? 0 : buffer_.size() - 3;
    return ParseStatus::kNeedMore;
  }
  const auto fields = std::count(head.begin(), head.end(), '\n');
  if (fields > limits_.max_fields) {
    return refuse(431, fmt::format("the request has more than {} header fields", limits_.max_fields));
  }
  return ParseStatus::kDone;
}

ParseStatus RequestParser::advance() {
  size_t consumed_total = 0;
  ParseStatus status = ParseStatus::kNeedMore;
  while (!beast_->parser.is_done()) {
    error_code error;
    const size_t left = buffer_.size() - consumed_total;
    if (left == 0 || (in_chunk_header_ && left < kLastChunkBytes)) break;
    const size_t consumed = beast_->parser.put({buffer_.data() + consumed_total, left}, error);
    consumed_total += consumed;
    in_chunk_header_ = head_done_ && error == bhttp::error::need_more;
    if (error == bhttp::error::need_more) {
      // Beast does not bound chunk headers and trailers.
      if (buffer_.size() - consumed_total > limits_.head_bytes) {
        status = refuse(431, fmt::format("a header is larger than {} bytes", limits_.head_bytes));
      }
      break;
    }
    if (error) {
      failure_ = describe(error, limits_);
      status = ParseStatus::kFailed;
      break;
    }
    if (!head_done_ && beast_->parser.is_header_done() && finish_head() == ParseStatus::kFailed) {
      status = ParseStatus::kFailed;
      break;
    }
    if (request_.body.size() > limits_.body_bytes) {
      status = refuse(413, fmt::format("the body is larger than {} bytes", limits_.body_bytes));
      break;
    }
  }
  buffer_.erase(0, consumed_total);
  if (status == ParseStatus::kNeedMore && beast_->parser.is_done()) status = ParseStatus::kDone;
  return status;
}

ParseStatus RequestParser::finish_head() {
  const auto& message = beast_->parser.get();
  head_done_ = true;
  request_.headers = copy_fields(message);
  request_.method = std::string(message.method_string());
  request_.target = std::string(message.target());
  request_.http_1_0 = message.version() < 11;
  keeps_alive_ = beast_->parser.keep_alive();
  if (check_framing() == ParseStatus::kFailed) return ParseStatus::kFailed;
  if (const auto expectation = request_.headers.find("Expect")) {
    if (!equals_ignoring_case(*expectation, "100-continue")) {
      return refuse(417, "the only supported expectation is 100-continue");
    }
    expects_continue_ = !request_.http_1_0;
  }
  std::string_view target = request_.target;
  if (target.starts_with("http://") || target.starts_with("https://")) {  // absolute form, RFC 9112 3.2.2
    const size_t path = target.find_first_of("/?", target.find("://") + 3);
    target = path == std::string_view::npos ? "/" : target.substr(path);
  }
  if (!target.starts_with('/')) return refuse(400, "expected a request target that starts with '/'");
  const size_t question = target.find('?');
  request_.path = target.substr(0, question);
  if (question != std::string_view::npos) request_.query = target.substr(question + 1);
  return ParseStatus::kNeedMore;
}

// Whatever two readers of one stream could understand differently is refused.
ParseStatus RequestParser::check_framing() {
  const int hosts = request_.headers.count("Host");
  if (hosts > 1 || (hosts == 0 && !request_.http_1_0)) {
    return refuse(400, fmt::format("expected one Host header, found {}", hosts));
  }
  if (hosts == 1 && !is_host(*request_.headers.find("Host"))) {
    return refuse(400, "expected a host name or address, and maybe a port, as Host");
  }
  if (const auto length = request_.headers.find("Content-Length")) {
    const bool digits =
        !length->empty() && std::ranges::all_of(*length, [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || request_.headers.count("Content-Length") > 1) {
      return refuse(400, "expected one Content-Length with decimal digits alone");
    }
  }
  if (const auto coding = request_.headers.find("Transfer-Encoding")) {
    if (request_.http_1_0) return refuse(400, "Transfer-Encoding is not part of HTTP/1.0");
    if (!equals_ignoring_case(*coding, "chunked") || request_.headers.count("Transfer-Encoding") > 1) {
      return refuse(501, "the only supported Transfer-Encoding is chunked");
    }
  }
  return ParseStatus::kNeedMore;
}

HttpRequest RequestParser::take() {
  HttpRequest taken = std::move(request_);
  request_ = {};
  head_done_ = expects_continue_ = keeps_alive_ = in_chunk_header_ = false;
  passed_empty_line_ = false;
  scanned_ = 0;
  beast_.reset();
  if (buffer_.empty()) buffer_ = {};
  return taken;
}

void RequestParser::discard() {
  beast_.reset();
  request_ = {};
  buffer_ = {};
}

struct ResponseParser::Beast {
  bhttp::parser<false, SinkBody> parser;
};

ResponseParser::ResponseParser(ParserLimits limits, bool is_head_request,
                               std::function<bool(std::string_view)> on_body)
    : limits_(limits), is_head_request_(is_head_request), on_body_(std::move(on_body)) {
  start();
}
ResponseParser::~ResponseParser() = default;

void ResponseParser::start() {
  beast_ = std::make_unique<Beast>();
  beast_->parser.header_limit(limits_.head_bytes);
  beast_->parser.body_limit(limits_.body_bytes);
  beast_->parser.eager(false);
  beast_->parser.skip(is_head_request_);
  beast_->parser.get().body() = on_body_;
}

ParseStatus ResponseParser::refuse(std::string message) {
  failure_ = std::move(message);
  return ParseStatus::kFailed;
}

ParseStatus ResponseParser::feed(std::string_view bytes) {
  if (!failure_.empty()) return ParseStatus::kFailed;
  buffer_.append(bytes);
  size_t consumed_total = 0;
  ParseStatus status = ParseStatus::kNeedMore;
  while (!beast_->parser.is_done() && consumed_total < buffer_.size()) {
    error_code error;
    const size_t left = buffer_.size() - consumed_total;
    if (in_chunk_header_ && left < kLastChunkBytes) break;
    consumed_total += beast_->parser.put({buffer_.data() + consumed_total, left}, error);
    in_chunk_header_ = head_done_ && error == bhttp::error::need_more;
    if (error == bhttp::error::need_more) {
      if (buffer_.size() - consumed_total > limits_.head_bytes) {
        status = refuse(fmt::format("a header is larger than {} bytes", limits_.head_bytes));
      }
      break;
    }
    if (error) {
      stopped_ = error == boost::asio::error::operation_aborted;
      status = refuse(stopped_ ? "stopped by the caller" : describe(error, limits_).message);
      break;
    }
    if (!head_done_ && beast_->parser.is_header_done()) {
      if (beast_->parser.get().result_int() / 100 == 1) {  // interim: the real response follows
        start();
        continue;
      }
      head_.status = static_cast<int>(beast_->parser.get().result_int());
      head_.headers = copy_fields(beast_->parser.get());
      if (const auto length = beast_->parser.content_length()) head_.content_length = *length;
      head_done_ = true;
      break;
    }
  }
  buffer_.erase(0, consumed_total);
  if (status == ParseStatus::kNeedMore && beast_->parser.is_done()) status = ParseStatus::kDone;
  return status;
}

ParseStatus ResponseParser::feed_end() {
  if (!failure_.empty()) return ParseStatus::kFailed;
  if (beast_->parser.is_done()) return ParseStatus::kDone;
  if (!beast_->parser.got_some()) return refuse("the peer closed the connection without answering");
  error_code error;
  beast_->parser.put_eof(error);
  if (error) return refuse("the peer closed the connection in the middle of its answer");
  return ParseStatus::kDone;
}

}  // namespace assay
