#include "modelfile/hf_tokenizer_parts.h"
#include "modelfile/show_name.h"

namespace assay::modelfile_internal {
namespace {

namespace json = boost::json;
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

// GPT-2's pattern, which ByteLevel applies unless told not to.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// HF counts Unicode punctuation and every ASCII mark as punctuation.
constexpr std::string_view kPunctuation = R"([\p{P}$+<=>^`|~])";

std::string escape_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}-/#").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

class PreTokenizerReader {
 public:
  PreTokenizerReader(VocabSpec& spec, TextRules& rules) : spec_(spec), rules_(rules) {}

  Result<void> read(const JsonReader& part) {
    ASSIGN_OR_RETURN(const auto type, part.text("type"));
    if (!type) return part.mismatch("type", "the kind of the pre_tokenizer");
    if (*type == "Sequence") return read_sequence(part);
    if (*type == "ByteLevel") return read_byte_level(part);
    if (*type == "Split") return read_split(part);
    if (*type == "Digits") return read_digits(part);
    if (*type == "Punctuation") return read_punctuation(part);
    if (*type == "Metaspace") return read_metaspace(part);
    return fail(ErrorCode::kUnsupported, part.where(), "{} is not supported", show_name(*type));
  }

 private:
  Result<void> read_sequence(const JsonReader& part) {
    ASSIGN_OR_RETURN(const json::array* parts, part.array("pretokenizers"));
    if (parts == nullptr) return part.mismatch("pretokenizers", "an array");
    for (const json::value& value : *parts) {
      ASSIGN_OR_RETURN(const JsonReader child, as_object(value, part.where()));
      RETURN_IF_ERROR(read(child));
    }
    return {};
  }

  Result<void> read_byte_level(const JsonReader& part) {
    rules_.byte_level = true;
    ASSIGN_OR_RETURN(const auto prefix, part.boolean("add_prefix_space"));
    ASSIGN_OR_RETURN(const auto pattern, part.boolean("use_regex"));
    if (prefix.value_or(true)) rules_.add_space_prefix = true;
    if (pattern.value_or(true)) spec_.split_patterns.emplace_back(kByteLevelPattern);
    return {};
  }

  Result<void> read_split(const JsonReader& part);
  Result<void> read_digits(const JsonReader& part);
  Result<void> read_punctuation(const JsonReader& part);
  Result<void> read_metaspace(const JsonReader& part);

  VocabSpec& spec_;
  TextRules& rules_;
};

Result<void> PreTokenizerReader::read_split(const JsonReader& part) {
  ASSIGN_OR_RETURN(const auto pattern, part.child("pattern"));
  if (!pattern) return part.mismatch("pattern", "a pattern");
  ASSIGN_OR_RETURN(const auto text, pattern->text("String"));
  ASSIGN_OR_RETURN(const auto expression, pattern->text("Regex"));
  ASSIGN_OR_RETURN(const auto behavior, part.text("behavior"));
  ASSIGN_OR_RETURN(const auto invert, part.boolean("invert"));
  if (!text && !expression) return part.mismatch("pattern", "a String or a Regex");
  // The normalizer has replaced every space: nothing is left to split at.
  if (text == " " && rules_.marks_spaces) return {};
  // Keeping only the matches is the same as isolating them: these patterns match everything.
  const bool isolates = behavior == "Isolated" || (behavior == "Removed" && invert.value_or(false));
  if (!isolates) {
    return fail(ErrorCode::kUnsupported, part.where(), "Split with behavior {} is not supported",
                show_name(behavior.value_or("")));
  }
  spec_.split_patterns.push_back(expression ? *expression : escape_pattern(*text));
  return {};
}

Result<void> PreTokenizerReader::read_digits(const JsonReader& part) {
  ASSIGN_OR_RETURN(const auto individual, part.boolean("individual_digits"));
  if (individual.value_or(false) && spec_.split_patterns.empty()) {
    spec_.isolate_digits = true;
  } else {
    spec_.split_patterns.emplace_back(individual.value_or(false) ? R"(\p{N})" : R"(\p{N}+)");
  }
  return {};
}

Result<void> PreTokenizerReader::read_punctuation(const JsonReader& part) {
  ASSIGN_OR_RETURN(const auto behavior, part.text("behavior"));
  const std::string chosen = behavior.value_or("Isolated");
  if (chosen != "Isolated" && chosen != "Contiguous") {
    return fail(ErrorCode::kUnsupported, part.where(), "Punctuation with behavior {} is not supported",
                show_name(chosen));
  }
  spec_.split_patterns.push_back(std::string(kPunctuation) + (chosen == "Contiguous" ? "+" : ""));
  return {};
}

Result<void> PreTokenizerReader::read_metaspace(const JsonReader& part) {
  ASSIGN_OR_RETURN(const auto replacement, part.text("replacement"));
  if (replacement && *replacement != kSpaceMark) {
    return fail(ErrorCode::kUnsupported, part.where(), "Metaspace with replacement {} is not supported",
                show_name(*replacement));
  }
  rules_.marks_spaces = true;
  ASSIGN_OR_RETURN(const auto scheme, part.text("prepend_scheme"));
  ASSIGN_OR_RETURN(const auto prefix, part.boolean("add_prefix_space"));
  if (scheme ? *scheme != "never" : prefix.value_or(true)) rules_.add_space_prefix = true;
  return {};
}

}  // namespace

Result<void> read_pre_tokenizer(const JsonReader& tokenizer, VocabSpec& spec, TextRules& rules) {
  ASSIGN_OR_RETURN(const auto part, tokenizer.child("pre_tokenizer"));
  if (!part) return {};
  return PreTokenizerReader(spec, rules).read(*part);
}

}  // namespace assay::modelfile_internal
