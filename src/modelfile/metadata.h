// Typed look-ups in a checkpoint's metadata. Internal to modelfile; the public face is Checkpoint.
// Thread safety: immutable after construction. Cost: O(log n) per look-up.
// Failure: kNotFound when absent, kCorrupt when the type is another or the value does not fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "modelfile/checkpoint.h"

namespace assay::modelfile_internal {

using MetadataList = std::vector<std::pair<std::string, MetadataValue>>;

class Metadata {
 public:
  Metadata() = default;
  // Keys must be distinct. `where` names the file in errors.
  Metadata(MetadataList entries, std::string where);

  const MetadataList& entries() const { return entries_; }
  const std::string& where() const { return where_; }
  const MetadataValue* find(std::string_view key) const;

  Result<int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  Result<std::string> text(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;
  // Borrowed from the entries.
  Result<const std::vector<std::string>*> texts(std::string_view key) const;
  Result<std::vector<int64_t>> integers(std::string_view key) const;

 private:
  Result<const MetadataValue*> require(std::string_view key) const;
  std::unexpected<Error> mismatch(std::string_view key, std::string_view expected,
                                  const MetadataValue& found) const;

  MetadataList entries_;
  std::vector<size_t> by_key_;  // indices into entries_, sorted by key
  std::string where_;
};

// For values that a well-formed file has: absent is kCorrupt.
template <class T>
Result<T> required(Result<T> value) {
  if (!value && value.error().code == ErrorCode::kNotFound) value.error().code = ErrorCode::kCorrupt;
  return value;
}

// The value where present; the fallback only for kNotFound: a value of the wrong type stays an error.
template <class T>
Result<std::optional<T>> if_present(Result<T> value) {
  if (value) return std::optional<T>(std::move(*value));
  if (value.error().code == ErrorCode::kNotFound) return std::optional<T>();
  return std::unexpected(std::move(value).error());
}

}  // namespace assay::modelfile_internal
