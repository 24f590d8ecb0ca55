#include "tokenizer/vocab_files.h"

#include <boost/json.hpp>
#include <cstdlib>
#include <cstring>
#include <map>
#include <variant>
#include <vector>

#include "base/file.h"

namespace assay::tokenizer_test {
namespace {

using Value = std::variant<int64_t, double, std::string, std::vector<std::string>, std::vector<double>>;

// Just enough of GGUF v3 to list its keys.
class GgufReader {
 public:
  explicit GgufReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::map<std::string, Value> run() {
    at_ = 8;  // magic, version
    take<uint64_t>();
    const auto count = take<uint64_t>();
    std::map<std::string, Value> values;
    for (uint64_t i = 0; i < count; ++i) {
      std::string key = take_string();
      values[std::move(key)] = take_value(take<uint32_t>());
    }
    return values;
  }

 private:
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string take_string() {
    const auto length = take<uint64_t>();
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return text;
  }

  double take_number(uint32_t type) {
    switch (type) {
      case 0:
        return take<uint8_t>();
      case 1:
        return take<int8_t>();
      case 2:
        return take<uint16_t>();
      case 3:
        return take<int16_t>();
      case 4:
        return take<uint32_t>();
      case 5:
        return take<int32_t>();
      case 6:
        return take<float>();
      case 7:
        return take<uint8_t>();
      case 10:
        return static_cast<double>(take<uint64_t>());
      case 11:
        return static_cast<double>(take<int64_t>());
      default:
        return take<double>();
    }
  }

  Value take_value(uint32_t type) {
    if (type == 8) return take_string();
    if (type != 9) return take_number(type);
    const auto element = take<uint32_t>();
    const auto count = take<uint64_t>();
    if (element == 8) {
      std::vector<std::string> strings(count);
      for (std::string& string : strings) string = take_string();
      return strings;
    }
    std::vector<double> numbers(count);
    for (double& number : numbers) number = take_number(element);
    return numbers;
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

std::optional<int32_t> id_of(const std::map<std::string, Value>& values, const std::string& key) {
  const auto found = values.find("tokenizer.ggml." + key);
  if (found == values.end()) return std::nullopt;
  return static_cast<int32_t>(std::get<double>(found->second));
}

template <class T>
T get_or(const std::map<std::string, Value>& values, const std::string& key, T fallback) {
  const auto found = values.find("tokenizer.ggml." + key);
  return found == values.end() ? fallback : std::get<T>(found->second);
}

// Collects the patterns of a pre_tokenizer object.
void read_patterns(const boost::json::object& step, VocabSpec& spec) {
  const std::string_view type = step.at("type").as_string();
  if (type == "Sequence") {
    for (const auto& inner : step.at("pretokenizers").as_array()) read_patterns(inner.as_object(), spec);
  } else if (type == "Digits") {
    spec.split_patterns.push_back(step.at("individual_digits").as_bool() ? "\\p{N}" : "\\p{N}+");
  } else if (type == "Split" && step.at("pattern").as_object().contains("Regex")) {
    spec.split_patterns.emplace_back(step.at("pattern").as_object().at("Regex").as_string());
  } else if (type == "ByteLevel" && (!step.contains("use_regex") || step.at("use_regex").as_bool())) {
    spec.split_patterns.emplace_back(
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  }
}

std::string merge_of(const boost::json::value& value) {
  if (value.is_string()) return std::string(value.as_string());
  const auto& pair = value.as_array();
  return std::string(pair[0].as_string()) + " " + std::string(pair[1].as_string());
}

void set_token(VocabSpec& spec, int64_t id, std::string_view text) {
  if (spec.tokens.size() <= static_cast<size_t>(id)) spec.tokens.resize(id + 1);
  spec.tokens[id] = text;
}

}  // namespace

Result<VocabSpec> read_gguf_vocabulary(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  const auto values = GgufReader(file.bytes()).run();
  VocabSpec spec;
  const auto model = get_or<std::string>(values, "model", "");
  spec.kind = model == "gpt2" ? VocabKind::kByteLevelBpe
              : model == "t5" ? VocabKind::kUnigram
                              : VocabKind::kSentencePieceBpe;
  spec.tokens = get_or(values, "tokens", std::vector<std::string>{});
  spec.merges = get_or(values, "merges", std::vector<std::string>{});
  for (const double score : get_or(values, "scores", std::vector<double>{})) {
    spec.scores.push_back(static_cast<float>(score));
  }
  for (const double kind : get_or(values, "token_type", std::vector<double>{})) {
    spec.kinds.push_back(static_cast<TokenKind>(static_cast<int>(kind) - 1));
  }
  spec.pre_tokenizer = get_or<std::string>(values, "pre", "");
  const bool sentencepiece = spec.kind == VocabKind::kSentencePieceBpe;
  spec.add_bos = get_or<double>(values, "add_bos_token", sentencepiece) != 0;
  spec.add_space_prefix = get_or<double>(values, "add_space_prefix", sentencepiece) != 0;
  spec.bos = id_of(values, "bos_token_id");
  spec.eos = id_of(values, "eos_token_id");
  spec.unknown = id_of(values, "unknown_token_id");
  return spec;
}

Result<VocabSpec> read_tokenizer_json(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path));
  const boost::json::value document = boost::json::parse(text);
  const auto& root = document.as_object();
  const auto& model = root.at("model").as_object();
  VocabSpec spec;
  for (const auto& [token, id] : model.at("vocab").as_object())
    set_token(spec, id.to_number<int64_t>(), token);
  for (const auto& merge : model.at("merges").as_array()) spec.merges.push_back(merge_of(merge));
  for (const auto& entry : root.at("added_tokens").as_array()) {
    const auto& added = entry.as_object();
    const auto id = added.at("id").to_number<int32_t>();
    const std::string content(added.at("content").as_string());
    set_token(spec, id, content);
    spec.added.push_back({.id = id,
                          .text = content,
                          .special = added.at("special").as_bool(),
                          .strip_left = added.at("lstrip").as_bool(),
                          .strip_right = added.at("rstrip").as_bool()});
  }
  const auto* byte_fallback = model.if_contains("byte_fallback");
  spec.byte_fallback = byte_fallback != nullptr && byte_fallback->as_bool();
  const auto* ignore_merges = model.if_contains("ignore_merges");
  spec.ignore_merges = ignore_merges != nullptr && ignore_merges->as_bool();
  spec.kind = spec.byte_fallback ? VocabKind::kSentencePieceBpe : VocabKind::kByteLevelBpe;
  const std::string normalizer = boost::json::serialize(root.at("normalizer"));
  spec.add_space_prefix = normalizer.contains("Prepend");
  spec.normalise_nfc = normalizer.contains("\"NFC\"");
  if (root.at("pre_tokenizer").is_object()) read_patterns(root.at("pre_tokenizer").as_object(), spec);
  if (model.at("unk_token").is_string()) {
    const std::string_view unknown = model.at("unk_token").as_string();
    for (size_t id = 0; id < spec.tokens.size(); ++id) {
      if (spec.tokens[id] == unknown) spec.unknown = static_cast<int32_t>(id);
    }
  }
  return spec;
}

std::filesystem::path shared_data() {
  const char* path = std::getenv("ASSAY_SHARED_DATA");
  return path != nullptr ? path : ASSAY_SOURCE_DIR "/../shared/data";
}

std::filesystem::path smollm2_path() {
  return assay_home() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf";
}

std::optional<std::filesystem::path> npm_tokenizer_path(const std::string& name) {
  const char* folder = std::getenv("ASSAY_TOKENIZERS");
  if (folder == nullptr) return std::nullopt;
  return std::filesystem::path(folder) / name / "package/models/tokenizer.json";
}

}  // namespace assay::tokenizer_test
