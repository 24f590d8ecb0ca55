#include "modelfile/gguf_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "modelfile/byte_reader.h"
#include "modelfile/gguf_types.h"
#include "modelfile/show_name.h"
#include "modelfile/tensor_layout.h"

namespace assay {
namespace {

using modelfile_internal::ByteReader;
using modelfile_internal::show_name;

constexpr uint64_t kMaximumElements = uint64_t{1} << 24;
constexpr uint64_t kMaximumEntries = uint64_t{1} << 20;  // of metadata; also of tensors
// Key length, one byte of key, value type, one byte of value.
constexpr uint64_t kMinimumEntryBytes = 8 + 1 + 4 + 1;
// Name length, one byte of name, dimension count, one dimension, type, offset.
constexpr uint64_t kMinimumTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string_view where)
      : bytes_(bytes), in_(bytes), where_(where) {}

  Result<GgufContents> parse() {
    RETURN_IF_ERROR(read_header());
    RETURN_IF_ERROR(read_metadata());
    RETURN_IF_ERROR(check_distinct_keys());
    RETURN_IF_ERROR(read_alignment());
    RETURN_IF_ERROR(read_tensor_infos());
    RETURN_IF_ERROR(place_tensors());
    return std::move(contents_);
  }

 private:
  template <class... Args>
  std::unexpected<Error> corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kCorrupt, where_, format, std::forward<Args>(args)...);
  }

  std::unexpected<Error> truncated(std::string_view item, uint64_t needed) const {
    return corrupt("truncated: {} needs {} bytes at offset {}, the file ends after {}", item, needed,
                   in_.position(), bytes_.size());
  }

  template <class T>
  Result<T> read(std::string_view item) {
    if (const auto value = in_.read<T>()) return *value;
    return truncated(item, sizeof(T));
  }

  Result<std::string> read_string(std::string_view item,
                                  uint64_t limit = std::numeric_limits<uint64_t>::max()) {
    ASSIGN_OR_RETURN(const uint64_t length, read<uint64_t>(item));
    if (length > limit) return corrupt("{} is {} bytes long, more than the {} allowed", item, length, limit);
    const auto text = in_.read_text(length);
    if (!text) return truncated(item, length);
    return std::string(*text);
  }

  Result<void> read_header();
  Result<void> check_tensor_count() const;
  Result<void> read_metadata();
  Result<MetadataValue> read_value(const std::string& key);
  Result<MetadataValue> read_array(const std::string& key);
  template <class Wide, class Stored>
  Result<MetadataValue> read_elements(const std::string& key, uint64_t count);
  Result<bool> read_bool(std::string_view item);
  Result<void> check_distinct_keys() const;
  Result<void> read_alignment();
  Result<void> read_tensor_infos();
  Result<void> read_tensor_info(uint64_t index);
  Result<BlockType> read_tensor_type(const std::string& name);
  Result<std::vector<int64_t>> read_shape(const std::string& name);
  Result<void> place_tensors();

  std::span<const std::byte> bytes_;
  ByteReader in_;
  std::string_view where_;
  GgufContents contents_;
  uint64_t n_metadata_ = 0;
  uint64_t n_tensors_ = 0;
  uint64_t n_elements_ = 0;        // of all arrays so far
  std::vector<uint64_t> offsets_;  // of tensors, inside the data section
};

Result<void> GgufParser::read_header() {
  const auto magic = in_.read_text(4);
  if (!magic || *magic != "GGUF") {
    return corrupt("is not a GGUF file: expected the magic 'GGUF', found {}",
                   bytes_.empty() ? "an empty file"
                                  : show_name({reinterpret_cast<const char*>(bytes_.data()),
                                               std::min<size_t>(4, bytes_.size())}));
  }
  ASSIGN_OR_RETURN(const uint32_t version, read<uint32_t>("the version"));
  if (version != 0 && (version & 0xffff) == 0) {
    return fail(ErrorCode::kUnsupported, where_,
                "is a big-endian GGUF file (version field {:#010x}); convert it to little-endian", version);
  }
  if (version == 1) {
    return fail(ErrorCode::kUnsupported, where_,
                "is GGUF version 1; convert it again with a current converter (v2 or v3)");
  }
  if (version != 2 && version != 3) {
    return fail(ErrorCode::kUnsupported, where_, "expected GGUF version 2 or 3, found {}", version);
  }
  contents_.version = version;
  ASSIGN_OR_RETURN(n_tensors_, read<uint64_t>("the number of tensors"));
  ASSIGN_OR_RETURN(n_metadata_, read<uint64_t>("the number of metadata entries"));
  const uint64_t most_entries = std::min(in_.remaining() / kMinimumEntryBytes, kMaximumEntries);
  if (n_metadata_ > most_entries) {
    return corrupt("claims {} metadata entries, the {} bytes that follow hold at most {}", n_metadata_,
                   in_.remaining(), most_entries);
  }
  return check_tensor_count();
}

Result<void> GgufParser::check_tensor_count() const {
  const uint64_t most = std::min(in_.remaining() / kMinimumTensorBytes, kMaximumEntries);
  if (n_tensors_ <= most) return {};
  return corrupt("claims {} tensors, the {} bytes that follow hold at most {}", n_tensors_, in_.remaining(),
                 most);
}

Result<void> GgufParser::read_metadata() {
  for (uint64_t i = 0; i < n_metadata_; ++i) {
    ASSIGN_OR_RETURN(std::string key, read_string("a metadata key", kGgufMaximumKey));
    if (key.empty()) return corrupt("metadata entry {} has an empty key", i);
    ASSIGN_OR_RETURN(MetadataValue value, read_value(key));
    contents_.metadata.emplace_back(std::move(key), std::move(value));
  }
  return {};
}

Result<bool> GgufParser::read_bool(std::string_view item) {
  ASSIGN_OR_RETURN(const uint8_t byte, read<uint8_t>(item));
  if (byte > 1) return corrupt("{}: expected a boolean of 0 or 1, found {}", item, byte);
  return byte == 1;
}

template <class T>
MetadataValue widen(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<int64_t>(value);
  } else {
    return static_cast<uint64_t>(value);
  }
}

Result<MetadataValue> GgufParser::read_value(const std::string& key) {
  const std::string item = "metadata " + show_name(key);
  ASSIGN_OR_RETURN(const uint32_t code, read<uint32_t>(item));
  const auto scalar = [&]<class T>(T) -> Result<MetadataValue> {
    ASSIGN_OR_RETURN(const T value, read<T>(item));
    return widen(value);
  };
  switch (static_cast<GgufValueType>(code)) {
    case GgufValueType::kUint8:
      return scalar(uint8_t{});
    case GgufValueType::kInt8:
      return scalar(int8_t{});
    case GgufValueType::kUint16:
      return scalar(uint16_t{});
    case GgufValueType::kInt16:
      return scalar(int16_t{});
    case GgufValueType::kUint32:
      return scalar(uint32_t{});
    case GgufValueType::kInt32:
      return scalar(int32_t{});
    case GgufValueType::kFloat32:
      return scalar(float{});
    case GgufValueType::kUint64:
      return scalar(uint64_t{});
    case GgufValueType::kInt64:
      return scalar(int64_t{});
    case GgufValueType::kFloat64:
      return scalar(double{});
    case GgufValueType::kBool: {
      ASSIGN_OR_RETURN(const bool value, read_bool(item));
      return value;
    }
    case GgufValueType::kString: {
      ASSIGN_OR_RETURN(std::string value, read_string(item));
      return value;
    }
    case GgufValueType::kArray:
      return read_array(key);
    case GgufValueType::kCount:
      break;
  }
  return corrupt("{}: expected a value type of 0 to 12, found {}", item, code);
}

Result<MetadataValue> GgufParser::read_array(const std::string& key) {
  const std::string item = "metadata " + show_name(key);
  ASSIGN_OR_RETURN(const uint32_t code, read<uint32_t>(item));
  ASSIGN_OR_RETURN(const uint64_t count, read<uint64_t>(item));
  if (code >= static_cast<uint32_t>(GgufValueType::kCount)) {
    return corrupt("{}: expected an element type of 0 to 12, found {}", item, code);
  }
  const auto type = static_cast<GgufValueType>(code);
  if (type == GgufValueType::kArray) {
    return fail(ErrorCode::kUnsupported, where_, "{} is an array of arrays, which no known key uses", item);
  }
  if (count > in_.remaining() / minimum_bytes(type)) {
    return corrupt("{} claims {} elements, the {} bytes that follow hold at most {}", item, count,
                   in_.remaining(), in_.remaining() / minimum_bytes(type));
  }
  n_elements_ += count;
  if (n_elements_ > kMaximumElements) {
    return corrupt("the metadata arrays hold more than {} elements at {}", kMaximumElements, item);
  }
  switch (type) {
    case GgufValueType::kUint8:
      return read_elements<uint64_t, uint8_t>(item, count);
    case GgufValueType::kInt8:
      return read_elements<int64_t, int8_t>(item, count);
    case GgufValueType::kUint16:
      return read_elements<uint64_t, uint16_t>(item, count);
    case GgufValueType::kInt16:
      return read_elements<int64_t, int16_t>(item, count);
    case GgufValueType::kUint32:
      return read_elements<uint64_t, uint32_t>(item, count);
    case GgufValueType::kInt32:
      return read_elements<int64_t, int32_t>(item, count);
    case GgufValueType::kFloat32:
      return read_elements<double, float>(item, count);
    case GgufValueType::kUint64:
      return read_elements<uint64_t, uint64_t>(item, count);
    case GgufValueType::kInt64:
      return read_elements<int64_t, int64_t>(item, count);
    case GgufValueType::kFloat64:
      return read_elements<double, double>(item, count);
    case GgufValueType::kBool:
      return read_elements<bool, bool>(item, count);
    case GgufValueType::kString:
      return read_elements<std::string, std::string>(item, count);
    case GgufValueType::kArray:
    case GgufValueType::kCount:
      break;
  }
  return corrupt("{}: expected an element type of 0 to 12, found {}", item, code);
}

template <class Wide, class Stored>
Result<MetadataValue> GgufParser::read_elements(const std::string& item, uint64_t count) {
  std::vector<Wide> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Stored, std::string>) {
      ASSIGN_OR_RETURN(std::string value, read_string(item));
      values.push_back(std::move(value));
    } else if constexpr (std::is_same_v<Stored, bool>) {
      ASSIGN_OR_RETURN(const bool value, read_bool(item));
      values.push_back(value);
    } else {
      ASSIGN_OR_RETURN(const Stored value, read<Stored>(item));
      values.push_back(static_cast<Wide>(value));
    }
  }
  return std::make_shared<const MetadataArray>(MetadataArray{std::move(values)});
}

// Sorting instead of hashing: a hostile file cannot choose colliding names.
std::optional<std::string_view> first_duplicate(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  const auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin == names.end()) return std::nullopt;
  return *twin;
}

Result<void> GgufParser::check_distinct_keys() const {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : contents_.metadata) keys.push_back(key);
  if (const auto twin = first_duplicate(std::move(keys)))
    return corrupt("metadata key {} occurs twice", show_name(*twin));
  return {};
}

Result<void> GgufParser::read_alignment() {
  contents_.alignment = kGgufDefaultAlignment;
  for (const auto& [key, value] : contents_.metadata) {
    if (key != "general.alignment") continue;
    const auto* alignment = std::get_if<uint64_t>(&value);
    if (alignment == nullptr) return corrupt("general.alignment is not an unsigned integer");
    if (!std::has_single_bit(*alignment) || *alignment > kGgufMaximumAlignment) {
      return corrupt("expected general.alignment to be a power of two up to 2^20, found {}", *alignment);
    }
    contents_.alignment = *alignment;
  }
  return {};
}

Result<void> GgufParser::read_tensor_infos() {
  RETURN_IF_ERROR(check_tensor_count());
  contents_.tensors.reserve(n_tensors_);
  offsets_.reserve(n_tensors_);
  for (uint64_t i = 0; i < n_tensors_; ++i) RETURN_IF_ERROR(read_tensor_info(i));
  std::vector<std::string_view> names;
  for (const Tensor& tensor : contents_.tensors) names.push_back(tensor.name);
  if (const auto twin = first_duplicate(std::move(names)))
    return corrupt("tensor {} occurs twice", show_name(*twin));
  return {};
}

Result<void> GgufParser::read_tensor_info(uint64_t index) {
  Tensor tensor;
  ASSIGN_OR_RETURN(tensor.name, read_string("a tensor name", kGgufMaximumTensorName));
  if (tensor.name.empty()) return corrupt("tensor {} has an empty name", index);
  ASSIGN_OR_RETURN(tensor.shape, read_shape(tensor.name));
  ASSIGN_OR_RETURN(tensor.type, read_tensor_type(tensor.name));
  ASSIGN_OR_RETURN(const uint64_t offset, read<uint64_t>("tensor " + show_name(tensor.name)));
  if (offset % contents_.alignment != 0) {
    return corrupt("tensor {}: offset {} is not a multiple of the alignment {}", show_name(tensor.name),
                   offset, contents_.alignment);
  }
  offsets_.push_back(offset);
  contents_.tensors.push_back(std::move(tensor));
  return {};
}

Result<std::vector<int64_t>> GgufParser::read_shape(const std::string& name) {
  const std::string item = "tensor " + show_name(name);
  ASSIGN_OR_RETURN(const uint32_t n_dimensions, read<uint32_t>(item));
  if (n_dimensions < 1 || n_dimensions > kGgufMaximumDimensions) {
    return corrupt("{}: expected 1 to {} dimensions, found {}", item, kGgufMaximumDimensions, n_dimensions);
  }
  std::vector<int64_t> shape(n_dimensions);
  // The file lists the innermost dimension first.
  for (auto dimension = shape.rbegin(); dimension != shape.rend(); ++dimension) {
    ASSIGN_OR_RETURN(const uint64_t size, read<uint64_t>(item));
    if (size == 0 || size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return corrupt("{}: expected positive dimensions, found {}", item, size);
    }
    *dimension = static_cast<int64_t>(size);
  }
  return shape;
}

Result<BlockType> GgufParser::read_tensor_type(const std::string& name) {
  ASSIGN_OR_RETURN(const uint32_t code, read<uint32_t>("tensor " + show_name(name)));
  if (const auto type = block_type_from_gguf(code)) return *type;
  if (const auto known = undecoded_gguf_type_name(code); !known.empty()) {
    return fail(ErrorCode::kUnsupported, where_, "tensor {} has type {}, which assay does not decode",
                show_name(name), known);
  }
  return corrupt("tensor {}: {} is not a tensor type", show_name(name), code);
}

Result<void> GgufParser::place_tensors() {
  if (contents_.tensors.empty()) return {};
  const uint64_t mask = contents_.alignment - 1;
  const uint64_t start = (in_.position() + mask) & ~mask;
  std::vector<modelfile_internal::PlacedTensor> placed(contents_.tensors.size());
  for (size_t i = 0; i < placed.size(); ++i) placed[i] = {&contents_.tensors[i], start, offsets_[i]};
  return modelfile_internal::place_in_file(bytes_, where_, placed);
}

}  // namespace

Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, std::string_view where) {
  return GgufParser(bytes, where).parse();
}

}  // namespace assay
