// JSON of untrusted files: parsed with limits on depth and memory, read with typed look-ups whose errors say
// where. Objects with a name twice are refused. Internal to modelfile. Thread safety: plain values. Failure:
// kCorrupt with the position; kResourceExhausted when the document needs more memory than allowed.
#pragma once

#include <boost/json/memory_resource.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace assay::modelfile_internal {

struct JsonLimits {
  size_t depth = 32;
  uint64_t memory_bytes = uint64_t{1} << 30;
};

Result<boost::json::value> parse_json(std::string_view text, std::string_view where, JsonLimits limits = {});

// Reads and parses a file of at most `limit_bytes`.
Result<boost::json::value> read_json_file(const std::string& path, uint64_t limit_bytes);

// The members of one object. Absent and null are the same, as the writers of these files mean it.
// Borrows the object and the text of `where`.
class JsonReader {
 public:
  JsonReader(const boost::json::object& object, std::string_view where) : object_(&object), where_(where) {}

  const boost::json::object& object() const { return *object_; }
  const std::string& where() const { return where_; }
  const boost::json::value* find(std::string_view name) const;

  Result<std::optional<int64_t>> integer(std::string_view name) const;  // also a number without fraction: 4.0
  Result<std::optional<double>> number(std::string_view name) const;
  Result<std::optional<bool>> boolean(std::string_view name) const;
  Result<std::optional<std::string>> text(std::string_view name) const;
  Result<std::optional<JsonReader>> child(std::string_view name) const;
  Result<const boost::json::array*> array(std::string_view name) const;  // null when absent

  std::unexpected<Error> mismatch(std::string_view name, std::string_view expected) const;

 private:
  const boost::json::object* object_;
  std::string where_;
};

// The document as an object.
Result<JsonReader> as_object(const boost::json::value& document, std::string_view where);

}  // namespace assay::modelfile_internal
