#include "http/sse.h"

#include <algorithm>
#include <charconv>

namespace assay {
namespace {

std::string without_line_breaks(std::string_view text) {
  std::string kept(text);
  std::erase_if(kept, [](char c) { return c == '\n' || c == '\r' || c == '\0'; });
  return kept;
}

void append_data_lines(std::string_view data, std::string& out) {
  while (true) {
    const size_t end = data.find_first_of("\r\n");
    out.append("data: ").append(data.substr(0, end)).append("\n");
    if (end == std::string_view::npos) return;
    const size_t width = data.substr(end).starts_with("\r\n") ? 2 : 1;
    data.remove_prefix(end + width);
  }
}

}  // namespace

std::string to_sse(const SseEvent& event) {
  std::string out;
  if (!event.type.empty()) out.append("event: ").append(without_line_breaks(event.type)).append("\n");
  if (!event.id.empty()) out.append("id: ").append(without_line_breaks(event.id)).append("\n");
  append_data_lines(event.data, out);
  out += '\n';
  return out;
}

std::string to_sse(std::string_view data) {
  std::string out;
  out.reserve(data.size() + 8);
  append_data_lines(data, out);
  out += '\n';
  return out;
}

Result<void> SseParser::feed(std::string_view bytes, const std::function<void(const SseEvent&)>& deliver) {
  while (!bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    if (line_.size() + data_.size() > max_event_bytes_) {
      return fail(ErrorCode::kResourceExhausted, "server-sent events", "an event is longer than {} bytes",
                  max_event_bytes_);
    }
    if (end == std::string_view::npos) return {};
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    take_line(deliver);
  }
  return {};
}

void SseParser::take_line(const std::function<void(const SseEvent&)>& deliver) {
  std::string_view line = line_;
  if (first_line_ && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  first_line_ = false;
  if (line.empty()) {
    if (has_data_) {
      data_.pop_back();  // the '\n' after the last data line
      deliver({std::move(type_), std::move(data_), id_});
    }
    type_.clear();
    data_.clear();
    has_data_ = false;
  } else if (const size_t colon = line.find(':'); colon != 0) {  // a leading colon is a comment
    std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    set_field(line.substr(0, colon), value);
  }
  line_.clear();
}

void SseParser::set_field(std::string_view name, std::string_view value) {
  if (name == "data") {
    data_.append(value).append("\n");
    has_data_ = true;
  } else if (name == "event") {
    type_ = value;
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) id_ = value;
  } else if (name == "retry") {
    int64_t milliseconds = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), milliseconds);
    const bool all_digits =
        std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (all_digits && error == std::errc{} && end == value.data() + value.size())
      retry_milliseconds_ = milliseconds;
  }
}

}  // namespace assay
