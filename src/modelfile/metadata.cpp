#include "modelfile/metadata.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

#include "modelfile/show_name.h"

namespace assay::modelfile_internal {
namespace {

constexpr auto kLargest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

std::string_view kind_name(const MetadataValue& value) {
  static constexpr std::string_view kNames[] = {"a boolean", "an integer", "an integer",
                                                "a number",  "a text",     "an array"};
  static_assert(std::size(kNames) == std::variant_size_v<MetadataValue>);
  return kNames[value.index()];
}

const MetadataArray* as_array(const MetadataValue& value) {
  const auto* array = std::get_if<std::shared_ptr<const MetadataArray>>(&value);
  return array == nullptr ? nullptr : array->get();
}

}  // namespace

Metadata::Metadata(MetadataList entries, std::string where)
    : entries_(std::move(entries)), by_key_(entries_.size()), where_(std::move(where)) {
  std::iota(by_key_.begin(), by_key_.end(), size_t{0});
  std::sort(by_key_.begin(), by_key_.end(),
            [&](size_t a, size_t b) { return entries_[a].first < entries_[b].first; });
}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto at =
      std::lower_bound(by_key_.begin(), by_key_.end(), key,
                       [&](size_t index, std::string_view wanted) { return entries_[index].first < wanted; });
  if (at == by_key_.end() || entries_[*at].first != key) return nullptr;
  return &entries_[*at].second;
}

Result<const MetadataValue*> Metadata::require(std::string_view key) const {
  if (const MetadataValue* value = find(key)) return value;
  return fail(ErrorCode::kNotFound, where_, "metadata {} is missing", show_name(key));
}

std::unexpected<Error> Metadata::mismatch(std::string_view key, std::string_view expected,
                                          const MetadataValue& found) const {
  return fail(ErrorCode::kCorrupt, where_, "metadata {}: expected {}, found {}", show_name(key), expected,
              kind_name(found));
}

Result<int64_t> Metadata::integer(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, require(key));
  if (const auto* number = std::get_if<int64_t>(value)) return *number;
  if (const auto* number = std::get_if<uint64_t>(value)) {
    if (*number <= kLargest) return static_cast<int64_t>(*number);
    return fail(ErrorCode::kCorrupt, where_, "metadata {}: {} exceeds 2^63 - 1", show_name(key), *number);
  }
  return mismatch(key, "an integer", *value);
}

Result<double> Metadata::number(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, require(key));
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* number = std::get_if<int64_t>(value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<uint64_t>(value)) return static_cast<double>(*number);
  return mismatch(key, "a number", *value);
}

Result<std::string> Metadata::text(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, require(key));
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  return mismatch(key, "a text", *value);
}

Result<bool> Metadata::boolean(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, require(key));
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  return mismatch(key, "a boolean", *value);
}

Result<std::vector<double>> Metadata::numbers(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, require(key));
  if (as_array(*value) == nullptr) {
    ASSIGN_OR_RETURN(const double single, number(key));
    return std::vector<double>{single};
  }
  return std::visit(
      [&](const auto& values) -> Result<std::vector<double>> {
        using Element = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_same_v<Element, std::string> || std::is_same_v<Element, bool>) {
          if (!values.empty()) {
            return fail(ErrorCode::kCorrupt, where_, "metadata {}: expected an array of numbers",
                        show_name(key));
          }
          return std::vector<double>();
        } else {
          return std::vector<double>(values.begin(), values.end());
        }
      },
      as_array(*value)->values);
}

Result<const std::vector<std::string>*> Metadata::texts(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, require(key));
  const MetadataArray* array = as_array(*value);
  if (array == nullptr) return mismatch(key, "an array of texts", *value);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&array->values)) return texts;
  return fail(ErrorCode::kCorrupt, where_, "metadata {}: expected an array of texts", show_name(key));
}

Result<std::vector<int64_t>> Metadata::integers(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, require(key));
  const MetadataArray* array = as_array(*value);
  if (array == nullptr) return mismatch(key, "an array of integers", *value);
  if (const auto* signed_values = std::get_if<std::vector<int64_t>>(&array->values)) return *signed_values;
  if (const auto* values = std::get_if<std::vector<uint64_t>>(&array->values)) {
    for (const uint64_t element : *values) {
      if (element > kLargest) {
        return fail(ErrorCode::kCorrupt, where_, "metadata {}: {} exceeds 2^63 - 1", show_name(key), element);
      }
    }
    return std::vector<int64_t>(values->begin(), values->end());
  }
  return fail(ErrorCode::kCorrupt, where_, "metadata {}: expected an array of integers", show_name(key));
}

}  // namespace assay::modelfile_internal
