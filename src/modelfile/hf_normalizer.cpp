#include <array>

#include "modelfile/hf_tokenizer_parts.h"
#include "modelfile/show_name.h"

namespace assay::modelfile_internal {
namespace {

namespace json = boost::json;
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

class NormalizerReader {
 public:
  NormalizerReader(VocabSpec& spec, TextRules& rules) : spec_(spec), rules_(rules) {}

  Result<void> read(const JsonReader& part) {
    ASSIGN_OR_RETURN(const auto type, part.text("type"));
    if (!type) return part.mismatch("type", "the kind of the normalizer");
    if (*type == "Sequence") return read_sequence(part);
    if (*type == "NFC") {
      spec_.normalise_nfc = true;
      return {};
    }
    if (*type == "Prepend") return read_prepend(part);
    if (*type == "Replace") return read_replace(part);
    if (*type == "Precompiled") return read_precompiled(part);
    return fail(ErrorCode::kUnsupported, part.where(), "{} is not supported", show_name(*type));
  }

 private:
  Result<void> read_sequence(const JsonReader& part) {
    ASSIGN_OR_RETURN(const json::array* parts, part.array("normalizers"));
    if (parts == nullptr) return part.mismatch("normalizers", "an array");
    for (const json::value& value : *parts) {
      ASSIGN_OR_RETURN(const JsonReader child, as_object(value, part.where()));
      RETURN_IF_ERROR(read(child));
    }
    return {};
  }

  Result<void> read_prepend(const JsonReader& part) {
    ASSIGN_OR_RETURN(const auto prefix, part.text("prepend"));
    if (prefix != kSpaceMark && prefix != " ") {
      return fail(ErrorCode::kUnsupported, part.where(), "Prepend of {} is not supported",
                  show_name(prefix.value_or("")));
    }
    rules_.add_space_prefix = true;
    return {};
  }

  // " " -> U+2581 marks spaces; runs of spaces -> one removes the extra ones.
  Result<void> read_replace(const JsonReader& part) {
    ASSIGN_OR_RETURN(const auto content, part.text("content"));
    ASSIGN_OR_RETURN(const auto pattern, part.child("pattern"));
    if (!pattern || !content) return part.mismatch("pattern", "a pattern and its content");
    ASSIGN_OR_RETURN(const auto text, pattern->text("String"));
    ASSIGN_OR_RETURN(const auto expression, pattern->text("Regex"));
    if (text == " " && content == kSpaceMark) {
      rules_.marks_spaces = true;
      return {};
    }
    if (expression == " {2,}" && (content == " " || content == kSpaceMark)) {
      spec_.remove_extra_whitespaces = true;
      return {};
    }
    return fail(ErrorCode::kUnsupported, part.where(), "Replace of {} by {} is not supported",
                show_name(text ? *text : expression.value_or("")), show_name(*content));
  }

  Result<void> read_precompiled(const JsonReader& part);

  VocabSpec& spec_;
  TextRules& rules_;
};

// Base64 (RFC 4648), padding optional.
std::optional<std::vector<uint8_t>> decode_base64(std::string_view text) {
  static constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<int8_t, 256> codes{};
  codes.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    codes[static_cast<uint8_t>(kAlphabet[i])] = static_cast<int8_t>(i);
  while (text.ends_with('=')) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t pending = 0;
  int n_bits = 0;
  for (const char c : text) {
    const int code = codes[static_cast<uint8_t>(c)];
    if (code < 0) return std::nullopt;
    pending = (pending << 6 | static_cast<uint32_t>(code)) & 0xffff;
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes.push_back(static_cast<uint8_t>(pending >> n_bits));
  }
  return bytes;
}

Result<void> NormalizerReader::read_precompiled(const JsonReader& part) {
  ASSIGN_OR_RETURN(const auto text, part.text("precompiled_charsmap"));
  if (!text) return {};
  auto bytes = decode_base64(*text);
  if (!bytes) return part.mismatch("precompiled_charsmap", "base64");
  spec_.precompiled_charsmap = std::move(*bytes);
  return {};
}

}  // namespace

Result<void> read_normalizer(const JsonReader& tokenizer, VocabSpec& spec, TextRules& rules) {
  ASSIGN_OR_RETURN(const auto part, tokenizer.child("normalizer"));
  if (!part) return {};
  return NormalizerReader(spec, rules).read(*part);
}

}  // namespace assay::modelfile_internal
