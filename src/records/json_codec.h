// Plain structs to JSON and back, by Boost.Describe. Decoding is strict: a missing field, an unknown field, a
// wrong type or a number out of range is kCorrupt with the path of the field ("plan.json:
// rungs[1].speed.samples: expected ...").
//
// Supported members: bool, integers, double (NaN and infinity are written as null), std::string, Precision
// (in its text form), std::optional (absent is left out), std::vector, and described structs. A record is a
// described struct with `static constexpr const char* kKind` and `static constexpr int kVersion`; its file
// starts with both, and a file of another kind or a newer version is refused.
// Thread safety: pure functions.
#pragma once

#include <boost/describe.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/algorithm.hpp>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "numeric/precision.h"

namespace assay {

// Parses with a depth limit of 32 and refuses duplicate keys and trailing text.
Result<boost::json::value> parse_json(std::string_view text, std::string_view where);
// Indented by two spaces; fractions with 15 significant digits.
std::string to_pretty_json(const boost::json::value& value);

namespace records_internal {

std::string kind_of(const boost::json::value& value);
std::unexpected<Error> mismatch(std::string_view path, std::string_view expected,
                                const boost::json::value& found);

template <class T>
concept Described = boost::describe::has_describe_members<T>::value;

template <class T>
using Members = boost::describe::describe_members<T, boost::describe::mod_public>;

inline boost::json::value encode(bool value) {
  return value;
}
boost::json::value encode(double value);
boost::json::value encode(const std::string& value);
boost::json::value encode(const Precision& value);
template <std::integral T>
  requires(!std::same_as<T, bool>)
boost::json::value encode(T value) {
  return value;
}
template <Described T>
boost::json::value encode(const T& value);
template <class T>
boost::json::value encode(const std::vector<T>& values) {
  boost::json::array array;
  for (const T& value : values) array.push_back(encode(value));
  return array;
}

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <Described T>
boost::json::value encode(const T& value) {
  boost::json::object object;
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    const auto& field = value.*member.pointer;
    if constexpr (kIsOptional<std::remove_cvref_t<decltype(field)>>) {
      if (field) object[member.name] = encode(*field);
    } else {
      object[member.name] = encode(field);
    }
  });
  return object;
}

Result<void> decode(const boost::json::value& value, const std::string& path, bool& out);
Result<void> decode(const boost::json::value& value, const std::string& path, double& out);
Result<void> decode(const boost::json::value& value, const std::string& path, std::string& out);
Result<void> decode(const boost::json::value& value, const std::string& path, Precision& out);
Result<int64_t> decode_integer(const boost::json::value& value, const std::string& path, int64_t low,
                               int64_t high);
Result<void> decode(const boost::json::value& value, const std::string& path, uint64_t& out);
template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, uint64_t>)
Result<void> decode(const boost::json::value& value, const std::string& path, T& out) {
  ASSIGN_OR_RETURN(const int64_t number,
                   decode_integer(value, path, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  out = static_cast<T>(number);
  return {};
}
template <Described T>
Result<void> decode(const boost::json::value& value, const std::string& path, T& out);
template <class T>
Result<void> decode(const boost::json::value& value, const std::string& path, std::vector<T>& out) {
  if (!value.is_array()) return mismatch(path, "an array", value);
  out.clear();
  for (const boost::json::value& item : value.get_array()) {
    T element{};
    RETURN_IF_ERROR(decode(item, fmt::format("{}[{}]", path, out.size()), element));
    out.push_back(std::move(element));
  }
  return {};
}

template <Described T>
Result<void> decode(const boost::json::value& value, const std::string& path, T& out) {
  if (!value.is_object()) return mismatch(path, "an object", value);
  const boost::json::object& object = value.get_object();
  const auto join = [&](std::string_view name) {
    return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
  };
  Result<void> status;
  size_t used = 0;
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    if (!status) return;
    auto& field = out.*member.pointer;
    const boost::json::value* found = object.if_contains(member.name);
    used += found != nullptr;
    if constexpr (kIsOptional<std::remove_cvref_t<decltype(field)>>) {
      field.reset();
      if (found != nullptr && !found->is_null()) status = decode(*found, join(member.name), field.emplace());
    } else if (found == nullptr) {
      status = fail(ErrorCode::kCorrupt, join(member.name), "is missing");
    } else {
      status = decode(*found, join(member.name), field);
    }
  });
  if (!status || used == object.size()) return status;
  for (const auto& entry : object) {
    bool known = false;
    boost::mp11::mp_for_each<Members<T>>([&](auto member) { known = known || entry.key() == member.name; });
    if (!known) return fail(ErrorCode::kCorrupt, join(entry.key()), "unknown field");
  }
  return status;
}

// Takes "kind" and "version" out of a record's object after checking them.
Result<boost::json::value> unwrap(std::string_view text, std::string_view where, std::string_view kind,
                                  int version);
std::string wrap(const boost::json::value& body, std::string_view kind, int version);

}  // namespace records_internal

template <class Record>
std::string record_to_json(const Record& record) {
  return records_internal::wrap(records_internal::encode(record), Record::kKind, Record::kVersion);
}

// `where` is the file's name, for messages.
template <class Record>
Result<Record> record_from_json(std::string_view text, std::string_view where) {
  ASSIGN_OR_RETURN(const boost::json::value body,
                   records_internal::unwrap(text, where, Record::kKind, Record::kVersion));
  Record record;
  if (auto decoded = records_internal::decode(body, "", record); !decoded) {
    return std::unexpected(decoded.error().within(where));
  }
  return record;
}

}  // namespace assay
