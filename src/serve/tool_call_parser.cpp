#include "serve/tool_call_parser.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

namespace assay {
namespace {

namespace json = boost::json;

constexpr std::string_view kSpaces = " \t\r\n";
constexpr std::string_view kHermesEnd = "</tool_call>";
constexpr size_t kMaxHead = 256;  // bytes of a call before its arguments; longer: read as a whole

// The longest end of `text` with which `mark` begins.
size_t partial_match(std::string_view text, std::string_view mark) {
  for (size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n)
    if (text.substr(text.size() - n) == mark.substr(0, n)) return n;
  return 0;
}

enum class Match { kYes, kNo, kMore };

// Reads pieces of JSON from a text that may be incomplete.
class HeadReader {
 public:
  explicit HeadReader(std::string_view text) : text_(text) {}

  Match expect(std::string_view wanted) {
    skip_space();
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with(wanted)) {
      at_ += wanted.size();
      return Match::kYes;
    }
    return wanted.starts_with(rest) ? Match::kMore : Match::kNo;
  }

  // A string without escapes, which names need not have.
  Match read_name(std::string& name) {
    if (const Match quote = expect("\""); quote != Match::kYes) return quote;
    const size_t end = text_.find_first_of("\"\\", at_);
    if (end == std::string_view::npos) return Match::kMore;
    if (text_[end] == '\\') return Match::kNo;
    name = text_.substr(at_, end - at_);
    at_ = end + 1;
    return Match::kYes;
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(kSpaces, at_), text_.size()); }
  size_t at() const { return at_; }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

ToolCallParser::ToolCallParser(ToolFormat format, std::vector<std::string> names, bool opened)
    : format_(format),
      names_(std::move(names)),
      state_(opened                          ? State::kHead
             : format == ToolFormat::kLlama3 ? State::kStart
                                             : State::kContent) {}

std::vector<ToolEvent> ToolCallParser::feed(std::string_view text) {
  buffer_ += text;
  while (look()) {
  }
  return std::exchange(events_, {});
}

std::vector<ToolEvent> ToolCallParser::finish() {
  if (state_ == State::kHead || state_ == State::kWhole) give_up();
  if (state_ == State::kContent || state_ == State::kStart) add_content(std::exchange(buffer_, {}));
  if (n_calls_ == 0 && any_content_ && !space_.empty())
    events_.push_back({ToolEvent::Kind::kContent, std::exchange(space_, {}), 0});
  return std::exchange(events_, {});
}

bool ToolCallParser::look() {
  if (buffer_.empty()) return false;
  switch (state_) {
    case State::kStart:
      return look_at_start();
    case State::kContent:
      return look_at_content();
    case State::kHead:
      return look_at_head();
    case State::kWhole:
      return look_at_whole();
    case State::kArguments:
      return stream_arguments();
    case State::kTail:
      return look_at_tail();
    case State::kAfter:
      return look_after();
    case State::kCount:
      break;
  }
  return false;
}

// An answer that begins with a brace is a call, where nothing else marks one.
bool ToolCallParser::look_at_start() {
  const size_t first = buffer_.find_first_not_of(kSpaces);
  if (first == std::string::npos) return false;
  state_ = buffer_[first] == '{' ? State::kHead : State::kContent;
  return true;
}

bool ToolCallParser::look_at_content() {
  const std::string_view opening = call_opening(format_);
  if (opening.empty()) {
    add_content(std::exchange(buffer_, {}));
    return false;
  }
  if (const size_t found = buffer_.find(opening); found != std::string::npos) {
    add_content(std::string_view(buffer_).substr(0, found));
    held_ = opening;
    buffer_.erase(0, found + opening.size());
    state_ = State::kHead;
    return true;
  }
  const size_t n_final = buffer_.size() - partial_match(buffer_, opening);
  add_content(std::string_view(buffer_).substr(0, n_final));
  buffer_.erase(0, n_final);
  return false;
}

// {"name": "f", "arguments": up to the brace of the arguments.
bool ToolCallParser::look_at_head() {
  HeadReader head(buffer_);
  if (format_ == ToolFormat::kMistral && head.expect("[") == Match::kNo) head = HeadReader(buffer_);
  std::string name;
  Match match = head.expect("{");
  const auto then = [&](auto&& step) {
    if (match == Match::kYes) match = step();
  };
  for (const std::string_view part : {"\"name\"", ":"}) then([&] { return head.expect(part); });
  then([&] { return head.read_name(name); });
  then([&] { return head.expect(","); });
  then([&] {
    const Match arguments = head.expect("\"arguments\"");
    return arguments == Match::kNo ? head.expect("\"parameters\"") : arguments;
  });
  then([&] { return head.expect(":"); });
  if (match == Match::kYes) {
    head.skip_space();
    if (head.at() == buffer_.size()) match = Match::kMore;
  }
  if (match == Match::kMore && buffer_.size() <= kMaxHead) return false;
  scanned_ = 0;
  depth_ = 0;
  in_string_ = escaped_ = false;
  if (match != Match::kYes || buffer_[head.at()] != '{') {
    // Another order, or arguments in a string: read it to its end, then see.
    const size_t brace = buffer_.find('{');
    if (brace == std::string::npos) return give_up(), true;
    state_ = State::kWhole;
    return true;
  }
  if (!is_offered(name)) return give_up(), true;
  begin_call(std::move(name));
  buffer_.erase(0, head.at());
  state_ = State::kArguments;
  return true;
}

// The end of the JSON object in the buffer, going on from where the last look ended.
std::optional<size_t> ToolCallParser::object_end() {
  for (; scanned_ < buffer_.size(); ++scanned_) {
    const char c = buffer_[scanned_];
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || (c == '[' && depth_ > 0)) {
      ++depth_;
    } else if ((c == '}' || c == ']') && depth_ > 0 && --depth_ == 0) {
      return ++scanned_;
    }
  }
  return std::nullopt;
}

bool ToolCallParser::look_at_whole() {
  const auto end = object_end();
  if (!end) return false;
  const size_t brace = buffer_.find('{');
  json::error_code error;
  const json::value call = json::parse(std::string_view(buffer_).substr(brace, *end - brace), error);
  const json::object* object = error ? nullptr : call.if_object();
  const json::value* called = object == nullptr ? nullptr : object->if_contains("name");
  if (called == nullptr || !called->is_string() || !is_offered(called->get_string())) return give_up(), true;
  const json::value* arguments = object->if_contains("arguments");
  if (arguments == nullptr) arguments = object->if_contains("parameters");
  begin_call(std::string(called->get_string()));
  if (arguments == nullptr) {
    add_arguments("{}");
  } else {
    add_arguments(arguments->is_string() ? std::string(arguments->get_string())
                                         : json::serialize(*arguments));
  }
  buffer_.erase(0, *end);
  state_ = State::kAfter;
  return true;
}

bool ToolCallParser::stream_arguments() {
  const auto end = object_end();
  const size_t n = end.value_or(buffer_.size());
  add_arguments(std::string_view(buffer_).substr(0, n));
  buffer_.erase(0, n);
  scanned_ = 0;
  if (!end) return false;
  depth_ = 1;  // inside the call's own object
  state_ = State::kTail;
  return true;
}

bool ToolCallParser::look_at_tail() {
  const auto end = object_end();
  buffer_.erase(0, end.value_or(buffer_.size()));
  scanned_ = 0;
  if (end) state_ = State::kAfter;
  return end.has_value();
}

bool ToolCallParser::look_after() {
  if (format_ == ToolFormat::kHermes) {
    const size_t found = buffer_.find(kHermesEnd);
    if (found == std::string::npos) {
      buffer_.erase(0, buffer_.size() - partial_match(buffer_, kHermesEnd));
      return false;
    }
    buffer_.erase(0, found + kHermesEnd.size());
    state_ = State::kContent;
    return true;
  }
  const size_t first = buffer_.find_first_not_of(kSpaces);
  if (first == std::string::npos) return false;
  const bool another = format_ == ToolFormat::kMistral && buffer_[first] == ',';
  if (another) held_.clear();
  if (another || buffer_[first] == ']') buffer_.erase(0, first + 1);
  state_ = another ? State::kHead : State::kContent;
  return true;
}

void ToolCallParser::add_content(std::string_view text) {
  const size_t last = text.find_last_not_of(kSpaces);
  if (last == std::string_view::npos) {
    if (any_content_) space_ += text;
    return;
  }
  // White space in front of everything is dropped: between a template's end and a call it says nothing.
  const size_t first = any_content_ ? 0 : text.find_first_not_of(kSpaces);
  events_.push_back({ToolEvent::Kind::kContent,
                     std::exchange(space_, {}) + std::string(text.substr(first, last + 1 - first)), 0});
  space_ = text.substr(last + 1);
  any_content_ = true;
}

void ToolCallParser::begin_call(std::string name) {
  space_.clear();
  held_.clear();
  events_.push_back({ToolEvent::Kind::kCall, std::move(name), n_calls_++});
}

void ToolCallParser::add_arguments(std::string_view text) {
  if (!text.empty()) events_.push_back({ToolEvent::Kind::kArguments, std::string(text), n_calls_ - 1});
}

void ToolCallParser::give_up() {
  add_content(std::exchange(held_, {}) + std::exchange(buffer_, {}));
  state_ = State::kContent;
}

bool ToolCallParser::is_offered(std::string_view name) const {
  return std::ranges::find(names_, name) != names_.end();
}

}  // namespace assay
