// Reads the fields of one JSON object strictly: each field is asked for by name, type and range; at the end,
// what nobody asked for is refused by name. The first failure is kept and later reads give nothing, so that
// callers read straight through and ask once. null counts as absent. Borrows the object. Not thread safe.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "serve/api_error.h"

namespace assay {

struct NumberRange {
  double low;
  double high;
  bool without_low = false;  // the lower end itself is excluded
};

class FieldReader {
 public:
  // `path` is put before field names in messages: "messages[2]".
  explicit FieldReader(const boost::json::object& object, std::string path = {})
      : object_(&object), path_(std::move(path)) {}

  std::optional<bool> boolean(std::string_view name);
  std::optional<int64_t> integer(std::string_view name, int64_t low, int64_t high);
  std::optional<double> number(std::string_view name, NumberRange range);
  std::optional<std::string> text(std::string_view name);
  const boost::json::array* array(std::string_view name);
  const boost::json::object* object(std::string_view name);
  const boost::json::value* any(std::string_view name);  // null when absent or JSON null

  // A field that is known but not supported: refused unless it is absent, null or has the value that asks for
  // nothing, given as JSON text ("false", "[]"; "null": none).
  void refuse(std::string_view name, std::string_view neutral_json, std::string_view why);

  // Fields that were never asked for are refused.
  void finish();

  void fail(std::string_view name, std::string message, std::string code = "invalid_value");
  void fail_type(std::string_view name, std::string_view expected, const boost::json::value& found);
  void fail_with(ApiError error);  // of a nested reader
  bool failed() const { return error_.has_value(); }
  const ApiError& error() const { return *error_; }
  std::string full_name(std::string_view name) const;

 private:
  const boost::json::object* object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
  std::optional<ApiError> error_;
};

// "a string", "the number 3.5", "an object", ...: what was found, for messages; long values are cut.
std::string describe_json(const boost::json::value& value);

}  // namespace assay
