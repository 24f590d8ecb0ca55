#include "records/json_codec.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>

namespace assay {
namespace {

namespace json = boost::json;

constexpr size_t kMaxDepth = 32;

void write_pretty(const json::value& value, int indent, std::string& out) {
  const std::string inner(static_cast<size_t>(indent) + 2, ' ');
  const std::string outer(static_cast<size_t>(indent), ' ');
  if (const json::object* object = value.if_object(); object != nullptr && !object->empty()) {
    out += "{\n";
    bool first = true;
    for (const auto& entry : *object) {
      if (!first) out += ",\n";
      first = false;
      out += inner + json::serialize(json::string(entry.key())) + ": ";
      write_pretty(entry.value(), indent + 2, out);
    }
    out += "\n" + outer + "}";
  } else if (const json::array* array = value.if_array(); array != nullptr && !array->empty()) {
    const bool flat = !array->front().is_structured();
    out += flat ? "[" : "[\n";
    for (size_t i = 0; i < array->size(); ++i) {
      if (i > 0) out += flat ? ", " : ",\n";
      if (!flat) out += inner;
      write_pretty((*array)[i], indent + 2, out);
    }
    out += flat ? "]" : "\n" + outer + "]";
  } else if (const double* number = value.if_double()) {
    // 15 digits survive text -> double -> text even where the parser is one unit in the last place off.
    out += std::isfinite(*number) ? fmt::format("{:.15g}", *number) : "null";
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

Result<json::value> parse_json(std::string_view text, std::string_view where) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code error;
  json::value value = json::parse(text, error, {}, options);
  if (error) return fail(ErrorCode::kCorrupt, where, "is not valid JSON: {}", error.message());
  return value;
}

std::string to_pretty_json(const json::value& value) {
  std::string out;
  write_pretty(value, 0, out);
  out += '\n';
  return out;
}

namespace records_internal {

std::string kind_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return "the number " + json::serialize(value);
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
  }
  return "something else";
}

std::unexpected<Error> mismatch(std::string_view path, std::string_view expected, const json::value& found) {
  return fail(ErrorCode::kCorrupt, path, "expected {}, found {}", expected, kind_of(found));
}

json::value encode(double value) {
  return std::isfinite(value) ? json::value(value) : json::value(nullptr);
}
json::value encode(const std::string& value) {
  return json::value(json::string(value));
}
json::value encode(const Precision& value) {
  return encode(to_string(value));
}

Result<void> decode(const json::value& value, const std::string& path, bool& out) {
  if (!value.is_bool()) return mismatch(path, "true or false", value);
  out = value.get_bool();
  return {};
}

Result<void> decode(const json::value& value, const std::string& path, double& out) {
  if (value.is_null()) {
    out = std::numeric_limits<double>::quiet_NaN();
    return {};
  }
  json::error_code error;
  out = value.to_number<double>(error);
  if (error) return mismatch(path, "a number", value);
  return {};
}

Result<void> decode(const json::value& value, const std::string& path, std::string& out) {
  if (!value.is_string()) return mismatch(path, "a string", value);
  out = std::string(value.get_string());
  return {};
}

Result<void> decode(const json::value& value, const std::string& path, Precision& out) {
  std::string text;
  RETURN_IF_ERROR(decode(value, path, text));
  auto parsed = parse_precision(text);
  if (!parsed) return std::unexpected(parsed.error().within(path));
  out = *parsed;
  return {};
}

Result<int64_t> decode_integer(const json::value& value, const std::string& path, int64_t low, int64_t high) {
  json::error_code error;
  const auto number = value.is_number() ? value.to_number<int64_t>(error) : int64_t{0};
  if (!value.is_number() || error) return mismatch(path, "an integer", value);
  if (number < low || number > high) {
    return fail(ErrorCode::kCorrupt, path, "expected an integer from {} to {}, found {}", low, high, number);
  }
  return number;
}

Result<void> decode(const json::value& value, const std::string& path, uint64_t& out) {
  json::error_code error;
  out = value.is_number() ? value.to_number<uint64_t>(error) : 0;
  if (!value.is_number() || error) return mismatch(path, "a non-negative integer", value);
  return {};
}

Result<json::value> unwrap(std::string_view text, std::string_view where, std::string_view kind,
                           int version) {
  ASSIGN_OR_RETURN(json::value value, parse_json(text, where));
  if (!value.is_object()) return mismatch(where, "an object", value);
  json::object& object = value.get_object();
  const json::value* found_kind = object.if_contains("kind");
  const json::value* found_version = object.if_contains("version");
  if (found_kind == nullptr || !found_kind->is_string() || found_kind->get_string() != kind) {
    return fail(ErrorCode::kCorrupt, where, "expected \"kind\": \"{}\", found {}", kind,
                found_kind == nullptr ? "none" : json::serialize(*found_kind));
  }
  if (found_version == nullptr || !found_version->is_int64() || found_version->get_int64() < 1) {
    return fail(ErrorCode::kCorrupt, where, "expected a positive \"version\"");
  }
  if (found_version->get_int64() != version) {
    return fail(ErrorCode::kUnsupported, where, "has {} version {}, this assay reads version {}", kind,
                found_version->get_int64(), version);
  }
  object.erase("kind");
  object.erase("version");
  return value;
}

std::string wrap(const json::value& body, std::string_view kind, int version) {
  json::object object;
  object["kind"] = json::string(kind);
  object["version"] = version;
  for (const auto& entry : body.get_object()) object[entry.key()] = entry.value();
  return to_pretty_json(object);
}

}  // namespace records_internal
}  // namespace assay
