#include "serve/json_body.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "serve/field_reader.h"

namespace assay {
namespace {

namespace json = boost::json;
using json::error_code;
using json::string_view;

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

// Builds values as json::parser does, and counts the names it reads: an object keeps one entry of a name, so
// a document with doubled names ends up with fewer entries than names.
struct CountingHandler {
  static constexpr size_t max_object_size = kNoLimit;
  static constexpr size_t max_array_size = kNoLimit;
  static constexpr size_t max_key_size = kNoLimit;
  static constexpr size_t max_string_size = kNoLimit;

  json::value_stack stack;
  size_t names = 0;

  bool on_document_begin(error_code&) { return stack.reset(), true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(size_t n, error_code&) { return stack.push_object(n), names += n, true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(size_t n, error_code&) { return stack.push_array(n), true; }
  bool on_key_part(string_view s, size_t, error_code&) { return stack.push_chars(s), true; }
  bool on_key(string_view s, size_t, error_code&) { return stack.push_key(s), true; }
  bool on_string_part(string_view s, size_t, error_code&) { return stack.push_chars(s), true; }
  bool on_string(string_view s, size_t, error_code&) { return stack.push_string(s), true; }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(int64_t value, string_view, error_code&) { return stack.push_int64(value), true; }
  bool on_uint64(uint64_t value, string_view, error_code&) { return stack.push_uint64(value), true; }
  bool on_double(double value, string_view, error_code&) { return stack.push_double(value), true; }
  bool on_bool(bool value, error_code&) { return stack.push_bool(value), true; }
  bool on_null(error_code&) { return stack.push_null(), true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }
};

// Finds the first doubled name; only for documents that have one.
struct DoubledNameFinder {
  static constexpr size_t max_object_size = kNoLimit;
  static constexpr size_t max_array_size = kNoLimit;
  static constexpr size_t max_key_size = kNoLimit;
  static constexpr size_t max_string_size = kNoLimit;

  std::vector<std::set<std::string, std::less<>>> open;
  std::string part;
  std::string found;

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return open.emplace_back(), true; }
  bool on_object_end(size_t, error_code&) { return open.pop_back(), true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(size_t, error_code&) { return true; }
  bool on_key_part(string_view s, size_t, error_code&) { return part.append(s), true; }
  bool on_key(string_view s, size_t, error_code& error) {
    std::string name = std::exchange(part, {}).append(s);
    if (open.back().contains(name)) {
      found = std::move(name);
      error = json::error::exception;  // stops the parse
      return false;
    }
    open.back().insert(std::move(name));
    return true;
  }
  bool on_string_part(string_view, size_t, error_code&) { return true; }
  bool on_string(string_view, size_t, error_code&) { return true; }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(int64_t, string_view, error_code&) { return true; }
  bool on_uint64(uint64_t, string_view, error_code&) { return true; }
  bool on_double(double, string_view, error_code&) { return true; }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }
};

// Depth is bounded by the parser.
size_t count_entries(const json::value& value) {
  size_t entries = 0;
  if (const json::array* array = value.if_array()) {
    for (const json::value& element : *array) entries += count_entries(element);
  } else if (const json::object* object = value.if_object()) {
    entries = object->size();
    for (const auto& entry : *object) entries += count_entries(entry.value());
  }
  return entries;
}

std::string first_doubled_name(std::string_view body, const json::parse_options& options) {
  json::basic_parser<DoubledNameFinder> parser(options);
  error_code error;
  parser.write_some(false, body.data(), body.size(), error);
  return parser.handler().found;
}

std::unexpected<ApiError> refuse(std::string message, std::string code = "invalid_json") {
  return std::unexpected(ApiError{.status = 400, .message = std::move(message), .code = std::move(code)});
}

}  // namespace

ApiResult<json::object> parse_json_body(std::string_view body, int max_depth) {
  if (body.empty()) return refuse("the body is empty; expected a JSON object");
  json::parse_options options;
  options.max_depth = static_cast<size_t>(max_depth);
  json::basic_parser<CountingHandler> parser(options);
  error_code error;
  const size_t position = parser.write_some(false, body.data(), body.size(), error);
  if (error == json::error::too_deep) {
    return refuse(fmt::format("the JSON body is nested deeper than {} levels", max_depth), "json_too_deep");
  }
  if (error) {
    return refuse(fmt::format("the body is not valid JSON: {} at byte {}", error.message(), position));
  }
  if (position < body.size()) {
    return refuse(fmt::format("the body is not valid JSON: found more after its end, at byte {}", position));
  }
  json::value value = parser.handler().stack.release();
  if (!value.is_object()) return refuse("expected a JSON object, found " + describe_json(value));
  if (count_entries(value) != parser.handler().names) {
    return refuse(fmt::format("the name {} comes twice in one object",
                              describe_json(json::string(first_doubled_name(body, options)))));
  }
  return std::move(value.get_object());
}

}  // namespace assay
