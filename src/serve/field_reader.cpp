#include "serve/field_reader.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>

namespace assay {

namespace json = boost::json;

std::string describe_json(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return value.get_bool() ? "true" : "false";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return "the number " + json::serialize(value);
    case json::kind::string:
      return value.get_string().size() > 40 ? "a string" : json::serialize(value);
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
  }
  return "something else";
}

std::string FieldReader::full_name(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void FieldReader::fail(std::string_view name, std::string message, std::string code) {
  if (error_) return;
  const std::string full = full_name(name);
  error_ = ApiError{.status = 400, .message = full + ": " + message, .param = full, .code = std::move(code)};
}

void FieldReader::fail_type(std::string_view name, std::string_view expected, const json::value& found) {
  fail(name, fmt::format("expected {}, found {}", expected, describe_json(found)), "invalid_type");
}

void FieldReader::fail_with(ApiError error) {
  if (!error_) error_ = std::move(error);
}

const json::value* FieldReader::any(std::string_view name) {
  known_.emplace(name);
  const json::value* found = object_->if_contains(name);
  return error_ || found == nullptr || found->is_null() ? nullptr : found;
}

std::optional<bool> FieldReader::boolean(std::string_view name) {
  const json::value* found = any(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_bool()) return fail_type(name, "true or false", *found), std::nullopt;
  return found->get_bool();
}

std::optional<int64_t> FieldReader::integer(std::string_view name, int64_t low, int64_t high) {
  const json::value* found = any(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) return fail_type(name, "an integer", *found), std::nullopt;
  if (found->is_int64() && found->get_int64() >= low && found->get_int64() <= high) return found->get_int64();
  const bool fractional = found->is_double() && found->get_double() != std::trunc(found->get_double());
  if (fractional) return fail_type(name, "an integer", *found), std::nullopt;
  fail(name, fmt::format("expected an integer from {} to {}, found {}", low, high, json::serialize(*found)));
  return std::nullopt;
}

std::optional<double> FieldReader::number(std::string_view name, NumberRange range) {
  const json::value* found = any(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) return fail_type(name, "a number", *found), std::nullopt;
  const double value = found->to_number<double>();
  const bool above = range.without_low ? value > range.low : value >= range.low;
  if (std::isfinite(value) && above && value <= range.high) return value;
  fail(name,
       fmt::format("expected a number {} {} and at most {}, found {}", range.without_low ? "above" : "from",
                   range.low, range.high, json::serialize(*found)));
  return std::nullopt;
}

std::optional<std::string> FieldReader::text(std::string_view name) {
  const json::value* found = any(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) return fail_type(name, "a string", *found), std::nullopt;
  return std::string(found->get_string());
}

const json::array* FieldReader::array(std::string_view name) {
  const json::value* found = any(name);
  if (found == nullptr) return nullptr;
  if (!found->is_array()) fail_type(name, "an array", *found);
  return found->if_array();
}

const json::object* FieldReader::object(std::string_view name) {
  const json::value* found = any(name);
  if (found == nullptr) return nullptr;
  if (!found->is_object()) fail_type(name, "an object", *found);
  return found->if_object();
}

void FieldReader::refuse(std::string_view name, std::string_view neutral_json, std::string_view why) {
  const json::value* found = any(name);
  if (found == nullptr || *found == json::parse(neutral_json)) return;
  fail(name, std::string(why), "unsupported_parameter");
}

void FieldReader::finish() {
  for (const auto& entry : *object_) {
    if (known_.contains(std::string_view(entry.key()))) continue;
    const std::string_view key = std::string_view(entry.key()).substr(0, 100);
    fail(key, "is not a parameter of this request", "unknown_parameter");
    return;
  }
}

}  // namespace assay
