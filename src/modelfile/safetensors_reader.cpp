#include "modelfile/safetensors_reader.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "modelfile/byte_reader.h"
#include "modelfile/json_document.h"
#include "modelfile/show_name.h"

namespace assay {
namespace {

using modelfile_internal::ByteReader;
using modelfile_internal::JsonReader;
using modelfile_internal::show_name;
namespace json = boost::json;

struct ElementType {
  std::string_view name;
  int bits;
  std::optional<BlockType> type;  // empty: known, not held
};
constexpr ElementType kElementTypes[] = {
    {"F32", 32, BlockType::kF32},
    {"F16", 16, BlockType::kF16},
    {"BF16", 16, BlockType::kBF16},
    {"F64", 64, BlockType::kF64},
    {"F8_E4M3", 8, BlockType::kFp8E4M3},
    {"F8_E5M2", 8, BlockType::kFp8E5M2},
    {"I8", 8, BlockType::kI8},
    {"I16", 16, BlockType::kI16},
    {"I32", 32, BlockType::kI32},
    {"I64", 64, BlockType::kI64},
    {"BOOL", 8, {}},
    {"U8", 8, {}},
    {"U16", 16, {}},
    {"U32", 32, {}},
    {"U64", 64, {}},
    {"F8_E8M0", 8, {}},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"C64", 64, {}},
};

const ElementType* find_element_type(std::string_view name) {
  const auto* found = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                   [&](const ElementType& element) { return element.name == name; });
  return found == std::end(kElementTypes) ? nullptr : found;
}

struct Entry {
  std::string name;
  const ElementType* element = nullptr;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // inside the data section
};

class SafetensorsParser {
 public:
  SafetensorsParser(std::span<const std::byte> bytes, std::string_view where)
      : bytes_(bytes), where_(where) {}

  Result<SafetensorsContents> parse() {
    ASSIGN_OR_RETURN(const std::string_view header, read_header());
    // A header of n bytes holds fewer than n values; 64 bytes each leaves room for every real one.
    const modelfile_internal::JsonLimits limits{
        .depth = 8, .memory_bytes = std::min<uint64_t>(64 * header.size() + 65536, uint64_t{1} << 30)};
    ASSIGN_OR_RETURN(const json::value document, modelfile_internal::parse_json(header, where_, limits));
    ASSIGN_OR_RETURN(const JsonReader root, modelfile_internal::as_object(document, where_));
    for (const auto& member : root.object()) {
      if (member.key() == "__metadata__") {
        RETURN_IF_ERROR(read_metadata(member.value()));
      } else {
        RETURN_IF_ERROR(read_entry(member.key(), member.value()));
      }
    }
    RETURN_IF_ERROR(check_coverage());
    for (Entry& entry : entries_) keep(entry);
    return std::move(contents_);
  }

 private:
  template <class... Args>
  std::unexpected<Error> corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kCorrupt, where_, format, std::forward<Args>(args)...);
  }

  Result<std::string_view> read_header();
  Result<void> read_metadata(const json::value& value);
  Result<void> read_entry(std::string_view name, const json::value& value);
  Result<std::vector<int64_t>> read_shape(const JsonReader& reader, const std::string& shown) const;
  Result<void> read_offsets(const JsonReader& reader, const std::string& shown, Entry& entry) const;
  Result<void> check_size(const Entry& entry, const std::string& shown) const;
  Result<void> check_coverage();
  void keep(Entry& entry);

  std::span<const std::byte> bytes_;
  std::string_view where_;
  std::span<const std::byte> data_;
  std::vector<Entry> entries_;
  SafetensorsContents contents_;
};

Result<std::string_view> SafetensorsParser::read_header() {
  ByteReader in(bytes_);
  const auto length = in.read<uint64_t>();
  if (!length) return corrupt("truncated: expected 8 bytes of header length, found {}", bytes_.size());
  if (*length > kSafetensorsMaximumHeader) {
    return corrupt("is not a safetensors file: header length {} exceeds {}", *length,
                   kSafetensorsMaximumHeader);
  }
  const auto header = in.read_text(*length);
  if (!header) {
    return corrupt("truncated: the header needs {} bytes, the file holds {} after its length", *length,
                   in.remaining());
  }
  if (!header->starts_with('{'))
    return corrupt("is not a safetensors file: the header does not start with '{{'");
  data_ = bytes_.subspan(in.position());
  return *header;
}

Result<void> SafetensorsParser::read_metadata(const json::value& value) {
  const auto* object = value.if_object();
  if (object == nullptr) return corrupt("__metadata__: expected an object");
  for (const auto& member : *object) {
    const auto* text = member.value().if_string();
    if (text == nullptr) return corrupt("__metadata__ {}: expected a text", show_name(member.key()));
    contents_.metadata.emplace_back(member.key(), std::string_view(*text));
  }
  return {};
}

Result<void> SafetensorsParser::read_entry(std::string_view name, const json::value& value) {
  const std::string shown = "tensor " + show_name(name);
  const auto* object = value.if_object();
  if (object == nullptr) return corrupt("{}: expected an object", shown);
  const JsonReader reader(*object, where_);
  Entry entry{.name = std::string(name)};
  const auto* type = object->if_contains("dtype");
  if (type == nullptr || !type->is_string()) return corrupt("{}: expected dtype as a text", shown);
  const std::string_view type_name = type->get_string();
  entry.element = find_element_type(type_name);
  if (entry.element == nullptr) {
    return fail(ErrorCode::kUnsupported, where_, "{}: unknown dtype {}", shown, show_name(type_name));
  }
  ASSIGN_OR_RETURN(entry.shape, read_shape(reader, shown));
  RETURN_IF_ERROR(read_offsets(reader, shown, entry));
  RETURN_IF_ERROR(check_size(entry, shown));
  entries_.push_back(std::move(entry));
  return {};
}

Result<std::vector<int64_t>> SafetensorsParser::read_shape(const JsonReader& reader,
                                                           const std::string& shown) const {
  const json::value* value = reader.find("shape");
  if (value == nullptr || !value->is_array()) return corrupt("{}: expected shape as an array", shown);
  std::vector<int64_t> shape;
  for (const json::value& size : value->get_array()) {
    if (!size.is_int64() || size.get_int64() < 0)
      return corrupt("{}: expected dimensions of 0 to 2^63 - 1", shown);
    shape.push_back(size.get_int64());
  }
  return shape;
}

Result<void> SafetensorsParser::read_offsets(const JsonReader& reader, const std::string& shown,
                                             Entry& entry) const {
  const json::value* value = reader.find("data_offsets");
  const auto* array = value == nullptr ? nullptr : value->if_array();
  if (array == nullptr || array->size() != 2 || !(*array)[0].is_int64() || !(*array)[1].is_int64()) {
    return corrupt("{}: expected data_offsets as two integers", shown);
  }
  const int64_t begin = (*array)[0].get_int64();
  const int64_t end = (*array)[1].get_int64();
  if (begin < 0 || end < begin)
    return corrupt("{}: data_offsets {} to {} are not a range", shown, begin, end);
  if (static_cast<uint64_t>(end) > data_.size()) {
    return corrupt("truncated: {} occupies data bytes {} to {}, the file holds {}", shown, begin, end,
                   data_.size());
  }
  entry.begin = static_cast<uint64_t>(begin);
  entry.end = static_cast<uint64_t>(end);
  return {};
}

Result<void> SafetensorsParser::check_size(const Entry& entry, const std::string& shown) const {
  uint64_t n_values = 1;
  for (const int64_t size : entry.shape) {
    if (__builtin_mul_overflow(n_values, static_cast<uint64_t>(size), &n_values)) {
      return corrupt("{}: the product of its dimensions exceeds 2^64", shown);
    }
  }
  uint64_t n_bits = 0;
  if (__builtin_mul_overflow(n_values, static_cast<uint64_t>(entry.element->bits), &n_bits)) {
    return corrupt("{}: {} values of {} exceed 2^64 bits", shown, n_values, entry.element->name);
  }
  if (n_bits % 8 != 0) {
    return corrupt("{}: {} values of {} are not whole bytes", shown, n_values, entry.element->name);
  }
  if (n_bits / 8 != entry.end - entry.begin) {
    return corrupt("{}: {} values of {} need {} bytes, data_offsets {} to {} give {}", shown, n_values,
                   entry.element->name, n_bits / 8, entry.begin, entry.end, entry.end - entry.begin);
  }
  return {};
}

Result<void> SafetensorsParser::check_coverage() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t covered = 0;
  for (const Entry& entry : entries_) {
    if (entry.begin < covered) {
      return corrupt("tensor {} overlaps the one before it: it begins at data byte {}, that one ends at {}",
                     show_name(entry.name), entry.begin, covered);
    }
    if (entry.begin > covered) {
      return corrupt("data bytes {} to {} before tensor {} belong to no tensor", covered, entry.begin,
                     show_name(entry.name));
    }
    covered = entry.end;
  }
  if (covered != data_.size()) {
    return corrupt("the tensors end at data byte {}, the file holds {}", covered, data_.size());
  }
  return {};
}

void SafetensorsParser::keep(Entry& entry) {
  const auto skip = [&](std::string_view reason) {
    contents_.left_out.push_back(entry.name);
    contents_.warnings.push_back(fmt::format("tensor {} was left out: {}", show_name(entry.name), reason));
  };
  if (!entry.element->type) return skip(fmt::format("assay does not hold {}", entry.element->name));
  if (entry.begin == entry.end) return skip("it has no values");
  if (entry.shape.size() > 4)
    return skip(fmt::format("it has {} dimensions, more than 4", entry.shape.size()));
  if (entry.shape.empty()) entry.shape = {1};
  contents_.tensors.push_back({.name = std::move(entry.name),
                               .type = *entry.element->type,
                               .shape = std::move(entry.shape),
                               .data = data_.subspan(entry.begin, entry.end - entry.begin)});
}

}  // namespace

Result<SafetensorsContents> parse_safetensors(std::span<const std::byte> bytes, std::string_view where) {
  return SafetensorsParser(bytes, where).parse();
}

}  // namespace assay
