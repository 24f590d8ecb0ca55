#include "modelfile/gguf_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <type_traits>

#include "base/check.h"
#include "modelfile/gguf_types.h"
#include "modelfile/show_name.h"
#include "modelfile/tensor_layout.h"

namespace assay {
namespace {

using modelfile_internal::show_name;

constexpr std::string_view kWhere = "GGUF document";
constexpr std::string_view kByteArrayKey = "tokenizer.ggml.precompiled_charsmap";

template <class... Args>
std::unexpected<Error> invalid(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, kWhere, format, std::forward<Args>(args)...);
}

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

Result<uint64_t> alignment_of(const GgufDocument& document) {
  for (const auto& [key, value] : document.metadata) {
    if (key != "general.alignment") continue;
    const auto* alignment = std::get_if<uint64_t>(&value);
    if (alignment != nullptr && std::has_single_bit(*alignment) && *alignment <= kGgufMaximumAlignment)
      return *alignment;
    return invalid("expected general.alignment to be an unsigned power of two up to 2^20");
  }
  return kGgufDefaultAlignment;
}

bool fits_float(double value) {
  const double size = std::abs(value);
  return size == 0 || !std::isfinite(value) ||
         (size >= std::numeric_limits<float>::min() && size <= std::numeric_limits<float>::max());
}

class HeaderEncoder {
 public:
  Result<std::string> encode(const GgufDocument& document) {
    out_ = "GGUF";
    put(uint32_t{3});
    put(static_cast<uint64_t>(document.tensors.size()));
    put(static_cast<uint64_t>(document.metadata.size()));
    ASSIGN_OR_RETURN(const uint64_t alignment, alignment_of(document));
    RETURN_IF_ERROR(put_metadata(document));
    RETURN_IF_ERROR(put_tensors(document, alignment));
    out_.resize(align_up(out_.size(), alignment), '\0');
    return std::move(out_);
  }

 private:
  template <class T>
  void put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void put_text(std::string_view text) {
    put(static_cast<uint64_t>(text.size()));
    out_ += text;
  }
  void put_type(GgufValueType type) { put(static_cast<uint32_t>(type)); }

  Result<void> put_metadata(const GgufDocument& document);
  void put_value(std::string_view key, const MetadataValue& value);
  void put_array(std::string_view key, const MetadataArray& array);
  template <class Narrow, class Wide>
  void put_elements(GgufValueType type, const std::vector<Wide>& values);
  void put_integers(std::string_view key, const std::vector<uint64_t>& values);
  void put_integers(const std::vector<int64_t>& values);
  Result<void> put_tensors(const GgufDocument& document, uint64_t alignment);

  std::string out_;
};

Result<void> HeaderEncoder::put_metadata(const GgufDocument& document) {
  std::set<std::string_view> seen;
  for (const auto& [key, value] : document.metadata) {
    if (key.empty() || key.size() > kGgufMaximumKey) {
      return invalid("expected metadata keys of 1 to {} bytes, found one of {}", kGgufMaximumKey, key.size());
    }
    if (!seen.insert(key).second) return invalid("metadata key {} occurs twice", show_name(key));
    put_text(key);
    put_value(key, value);
  }
  return {};
}

void HeaderEncoder::put_value(std::string_view key, const MetadataValue& value) {
  const auto put_as = [&]<class Narrow>(GgufValueType type, Narrow number) {
    put_type(type);
    put(number);
  };
  if (const auto* flag = std::get_if<bool>(&value)) {
    put_as(GgufValueType::kBool, static_cast<uint8_t>(*flag));
  } else if (const auto* number = std::get_if<int64_t>(&value)) {
    if (std::in_range<int32_t>(*number)) {
      put_as(GgufValueType::kInt32, static_cast<int32_t>(*number));
    } else {
      put_as(GgufValueType::kInt64, *number);
    }
  } else if (const auto* natural = std::get_if<uint64_t>(&value)) {
    if (std::in_range<uint32_t>(*natural)) {
      put_as(GgufValueType::kUint32, static_cast<uint32_t>(*natural));
    } else {
      put_as(GgufValueType::kUint64, *natural);
    }
  } else if (const auto* real = std::get_if<double>(&value)) {
    if (fits_float(*real)) {
      put_as(GgufValueType::kFloat32, static_cast<float>(*real));
    } else {
      put_as(GgufValueType::kFloat64, *real);
    }
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    put_type(GgufValueType::kString);
    put_text(*text);
  } else {
    put_type(GgufValueType::kArray);
    put_array(key, *std::get<std::shared_ptr<const MetadataArray>>(value));
  }
}

template <class Narrow, class Wide>
void HeaderEncoder::put_elements(GgufValueType type, const std::vector<Wide>& values) {
  put_type(type);
  put(static_cast<uint64_t>(values.size()));
  for (const Wide value : values) put(static_cast<Narrow>(value));
}

void HeaderEncoder::put_integers(std::string_view key, const std::vector<uint64_t>& values) {
  const uint64_t largest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  if (key == kByteArrayKey && largest <= 255) return put_elements<uint8_t>(GgufValueType::kUint8, values);
  if (std::in_range<uint32_t>(largest)) return put_elements<uint32_t>(GgufValueType::kUint32, values);
  put_elements<uint64_t>(GgufValueType::kUint64, values);
}

void HeaderEncoder::put_integers(const std::vector<int64_t>& values) {
  const bool narrow =
      std::all_of(values.begin(), values.end(), [](int64_t v) { return std::in_range<int32_t>(v); });
  if (narrow) return put_elements<int32_t>(GgufValueType::kInt32, values);
  put_elements<int64_t>(GgufValueType::kInt64, values);
}

void HeaderEncoder::put_array(std::string_view key, const MetadataArray& array) {
  if (const auto* flags = std::get_if<std::vector<bool>>(&array.values)) {
    put_elements<uint8_t>(GgufValueType::kBool, *flags);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&array.values)) {
    put_integers(*integers);
  } else if (const auto* naturals = std::get_if<std::vector<uint64_t>>(&array.values)) {
    put_integers(key, *naturals);
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&array.values)) {
    if (std::all_of(numbers->begin(), numbers->end(), fits_float)) {
      put_elements<float>(GgufValueType::kFloat32, *numbers);
    } else {
      put_elements<double>(GgufValueType::kFloat64, *numbers);
    }
  } else {
    const auto& texts = std::get<std::vector<std::string>>(array.values);
    put_type(GgufValueType::kString);
    put(static_cast<uint64_t>(texts.size()));
    for (const std::string& text : texts) put_text(text);
  }
}

Result<void> check_description(const Tensor& tensor, std::set<std::string_view>& seen) {
  const std::string shown = show_name(tensor.name);
  if (tensor.name.empty() || tensor.name.size() > kGgufMaximumTensorName) {
    return invalid("expected tensor names of 1 to {} bytes, found {}", kGgufMaximumTensorName, shown);
  }
  if (!seen.insert(tensor.name).second) return invalid("tensor {} occurs twice", shown);
  if (tensor.shape.empty() || tensor.shape.size() > kGgufMaximumDimensions) {
    return invalid("tensor {}: expected 1 to {} dimensions, found {}", shown, kGgufMaximumDimensions,
                   tensor.shape.size());
  }
  if (!gguf_code(tensor.type))
    return invalid("tensor {}: GGUF has no number for {}", shown, name(tensor.type));
  return {};
}

Result<uint64_t> described_bytes(const Tensor& tensor) {
  auto bytes = modelfile_internal::checked_bytes(tensor, kWhere);
  if (!bytes) bytes.error().code = ErrorCode::kInvalidArgument;
  return bytes;
}

Result<void> HeaderEncoder::put_tensors(const GgufDocument& document, uint64_t alignment) {
  std::set<std::string_view> seen;
  uint64_t offset = 0;
  for (const Tensor& tensor : document.tensors) {
    RETURN_IF_ERROR(check_description(tensor, seen));
    ASSIGN_OR_RETURN(const uint64_t bytes, described_bytes(tensor));
    put_text(tensor.name);
    put(static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      put(static_cast<uint64_t>(*size));
    put(*gguf_code(tensor.type));
    put(offset);
    if (bytes > (uint64_t{1} << 62) || offset > (uint64_t{1} << 62))
      return invalid("the tensors exceed 2^62 bytes");
    offset = align_up(offset + bytes, alignment);
  }
  return {};
}

}  // namespace

Result<std::string> encode_gguf_header(const GgufDocument& document) {
  return HeaderEncoder().encode(document);
}

Result<GgufWriter> GgufWriter::create(const std::filesystem::path& path, const GgufDocument& document) {
  GgufWriter writer;
  writer.path_ = path;
  ASSIGN_OR_RETURN(const std::string header, encode_gguf_header(document));
  ASSIGN_OR_RETURN(writer.alignment_, alignment_of(document));
  for (const Tensor& tensor : document.tensors) {
    ASSIGN_OR_RETURN(const uint64_t bytes, described_bytes(tensor));
    writer.tensor_bytes_.push_back(bytes);
  }
  ASSIGN_OR_RETURN(writer.file_, AtomicFile::create(path));
  RETURN_IF_ERROR(writer.file_.write(header));
  return writer;
}

Result<void> GgufWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (tensor_ == tensor_bytes_.size()) {
      return fail(ErrorCode::kInvalidArgument, path_.string(), "{} bytes more than the tensors hold",
                  bytes.size());
    }
    const uint64_t piece = std::min<uint64_t>(bytes.size(), tensor_bytes_[tensor_] - tensor_done_);
    RETURN_IF_ERROR(file_.write(bytes.first(piece)));
    bytes = bytes.subspan(piece);
    tensor_done_ += piece;
    if (tensor_done_ < tensor_bytes_[tensor_]) continue;
    RETURN_IF_ERROR(pad());
    ++tensor_;
    tensor_done_ = 0;
  }
  return {};
}

Result<void> GgufWriter::pad() {
  const uint64_t padding = align_up(file_.written_bytes(), alignment_) - file_.written_bytes();
  return file_.write(std::string(padding, '\0'));
}

Result<void> GgufWriter::finish() {
  if (tensor_ < tensor_bytes_.size()) {
    return fail(ErrorCode::kInvalidArgument, path_.string(),
                "expected data of {} tensors, found {} and {} bytes", tensor_bytes_.size(), tensor_,
                tensor_done_);
  }
  return file_.commit();
}

Result<void> write_gguf(const std::filesystem::path& path, const GgufDocument& document) {
  ASSIGN_OR_RETURN(GgufWriter writer, GgufWriter::create(path, document));
  for (size_t i = 0; i < document.tensors.size(); ++i) {
    const Tensor& tensor = document.tensors[i];
    ASSIGN_OR_RETURN(const uint64_t bytes, described_bytes(tensor));
    if (tensor.data.size() != bytes) {
      return invalid("tensor {}: expected {} bytes of data, found {}", show_name(tensor.name), bytes,
                     tensor.data.size());
    }
    RETURN_IF_ERROR(writer.append(tensor.data));
  }
  return writer.finish();
}

}  // namespace assay
