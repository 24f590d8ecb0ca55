// What the reference tokenizers said (data/*.json, see oracle/record_ids.py for the commands and the
// encoding).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace assay::tokenizer_test {

// data/strings.json.
const std::vector<std::string>& recorded_strings();

struct Reference {
  std::string hashes;                               // four characters per string
  std::map<size_t, std::vector<int32_t>> examples;  // by index of the string
};

// data/<file>, by name of the tokenizer.
std::map<std::string, Reference> recorded_references(const std::string& file);

// data/nfc.json: the strings that NFC changes, by index.
std::map<size_t, std::string> recorded_nfc();

struct InvalidStrings {
  std::vector<std::string> strings;
  std::string gpt2_hashes;
};
// data/invalid.json: invalid UTF-8.
InvalidStrings recorded_invalid_strings();

// The four characters that stand for these numbers.
std::string hash24(std::span<const int32_t> numbers);

}  // namespace assay::tokenizer_test
