// Server-sent events: writing them and parsing a stream of them. Source: WHATWG HTML, "Server-sent events".
// Pure; one parser per stream, not thread safe. Failure: kResourceExhausted when a line or event outgrows its
// limit. Cost: linear in the bytes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay {

struct SseEvent {
  std::string type;  // empty means "message"
  std::string data;  // lines joined by '\n'
  std::string id;    // the last id seen on the stream
};

// "data: ...\n\n", one data line per line of `data`; with "event:" and "id:" lines where they are not empty.
// Line breaks inside type and id are dropped, since they could not be represented.
std::string to_sse(const SseEvent& event);
std::string to_sse(std::string_view data);

class SseParser {
 public:
  explicit SseParser(size_t max_event_bytes = size_t{1} << 22) : max_event_bytes_(max_event_bytes) {}

  // Bytes may be cut anywhere, inside characters and line breaks too. An event without its closing blank line
  // is never delivered.
  Result<void> feed(std::string_view bytes, const std::function<void(const SseEvent&)>& deliver);

  // The server's wish for the reconnection delay, when it sent one.
  std::optional<int64_t> retry_milliseconds() const { return retry_milliseconds_; }

 private:
  void take_line(const std::function<void(const SseEvent&)>& deliver);
  void set_field(std::string_view name, std::string_view value);

  size_t max_event_bytes_;
  std::string line_;
  std::string type_;
  std::string data_;
  std::string id_;
  std::optional<int64_t> retry_milliseconds_;
  bool after_cr_ = false;   // a following LF belongs to the same line break
  bool first_line_ = true;  // may start with a byte order mark
  bool has_data_ = false;
};

}  // namespace assay
