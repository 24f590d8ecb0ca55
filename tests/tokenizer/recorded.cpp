#include "tokenizer/recorded.h"

#include <boost/json.hpp>

#include "base/file.h"

namespace assay::tokenizer_test {
namespace {

boost::json::value load(const std::string& file) {
  return boost::json::parse(read_file(std::string(ASSAY_SOURCE_DIR "/tests/tokenizer/data/") + file).value());
}

}  // namespace

const std::vector<std::string>& recorded_strings() {
  static const auto strings = boost::json::value_to<std::vector<std::string>>(load("strings.json"));
  return strings;
}

std::map<std::string, Reference> recorded_references(const std::string& file) {
  std::map<std::string, Reference> references;
  const boost::json::value document = load(file);
  for (const auto& [name, value] : document.at("references").as_object()) {
    Reference& reference = references[name];
    reference.hashes = value.at("hashes").as_string();
    const auto* examples = value.as_object().if_contains("examples");
    if (examples == nullptr) continue;
    for (const auto& [index, ids] : examples->as_object()) {
      reference.examples[std::stoul(index)] = boost::json::value_to<std::vector<int32_t>>(ids);
    }
  }
  return references;
}

std::map<size_t, std::string> recorded_nfc() {
  std::map<size_t, std::string> strings;
  const boost::json::value document = load("nfc.json");
  for (const auto& [index, text] : document.as_object()) {
    strings[std::stoul(index)] = std::string(text.as_string());
  }
  return strings;
}

InvalidStrings recorded_invalid_strings() {
  InvalidStrings result;
  const boost::json::value document = load("invalid.json");
  result.gpt2_hashes = document.at("gpt-2").as_string();
  for (const auto& hex : document.at("strings").as_array()) {
    std::string& bytes = result.strings.emplace_back();
    const std::string digits(hex.as_string());
    for (size_t i = 0; i < digits.size(); i += 2) {
      bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    }
  }
  return result;
}

std::string hash24(std::span<const int32_t> numbers) {
  constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint64_t hash = 0xCBF29CE484222325;
  for (const int32_t number : numbers) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (static_cast<uint32_t>(number) >> shift & 0xFF)) * 0x100000001B3;
    }
  }
  std::string text;
  for (int shift = 58; shift >= 40; shift -= 6) text.push_back(kBase64[hash >> shift & 63]);
  return text;
}

}  // namespace assay::tokenizer_test
