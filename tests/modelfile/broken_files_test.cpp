// Every file that tools/make_broken_files writes gives exactly the error that data/expected_errors.txt lists:
//   <folder>/<file>: <error code>: <where>: <what>      or      <folder>/<file>: ok
// Each line was checked against the rules of the format; a file without a line, or a line without a file,
// fails.
#include <gtest/gtest.h>

#include <boost/json/value.hpp>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "base/file.h"
#include "modelfile/checkpoint.h"
#include "modelfile/hf_config.h"
#include "modelfile/hf_tokenizer.h"
#include "modelfile/json_document.h"
#include "modelfile/safetensors_reader.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using namespace modelfile_internal;

std::string describe(const Error& error) {
  return std::string(name(error.code)) + ": " + error.message();
}

template <class T>
std::string outcome(const Result<T>& result) {
  return result ? "ok" : describe(result.error());
}

std::string read_gguf_file(const fs::path& path) {
  const auto checkpoint = Checkpoint::open(path);
  if (!checkpoint) return describe(checkpoint.error());
  return outcome(checkpoint->vocab());
}

std::string read_safetensors_file(const fs::path& path) {
  const auto file = MappedFile::open(path);
  if (!file) return describe(file.error());
  return outcome(parse_safetensors(file->bytes(), path.string()));
}

std::string read_config_file(const fs::path& path) {
  const auto document = read_json_file(path.string(), 1 << 20);
  if (!document) return describe(document.error());
  const auto root = as_object(*document, path.string());
  if (!root) return describe(root.error());
  return outcome(translate_config(*root, "model"));
}

std::string read_tokenizer_file(const fs::path& path) {
  auto document = read_json_file(path.string(), 1 << 20);
  if (!document) return describe(document.error());
  HfTokenizerFiles files;
  files.tokenizer = std::move(*document);
  return outcome(vocab_from_tokenizer_files(files, "model"));
}

std::string read_any(const fs::path& path) {
  const std::string file = path.filename().string();
  if (path.parent_path().filename() == "modelfile_gguf_fuzz") return read_gguf_file(path);
  if (file.starts_with("config-")) return read_config_file(path);
  if (file.starts_with("tokenizer-")) return read_tokenizer_file(path);
  return read_safetensors_file(path);
}

// The folder of the corpus is cut out, so that the table holds on every machine.
std::string without_folder(std::string text, const std::string& folder) {
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.erase(at, folder.size());
  return text;
}

std::map<std::string, std::string> actual_outcomes() {
  std::map<std::string, std::string> outcomes;
  for (const std::string folder : {"modelfile_gguf_fuzz", "modelfile_safetensors_fuzz"}) {
    const fs::path root = fs::path(ASSAY_SOURCE_DIR) / "fuzz" / "corpus" / folder;
    for (const auto& entry : fs::directory_iterator(root)) {
      outcomes[folder + "/" + entry.path().filename().string()] =
          without_folder(read_any(entry.path()), root.string() + "/");
    }
  }
  return outcomes;
}

std::map<std::string, std::string> expected_outcomes() {
  const auto text = read_file(ASSAY_SOURCE_DIR "/tests/modelfile/data/expected_errors.txt");
  EXPECT_TRUE(text) << text.error().message();
  std::map<std::string, std::string> outcomes;
  std::istringstream lines(text ? *text : "");
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (!line.empty() && line[0] != '#' && colon != std::string::npos) {
      outcomes[line.substr(0, colon)] = line.substr(colon + 2);
    }
  }
  return outcomes;
}

TEST(BrokenFiles, each_gives_its_error) {
  const auto expected = expected_outcomes();
  const auto actual = actual_outcomes();
  ASSERT_GT(actual.size(), 100U);
  for (const auto& [file, error] : actual) {
    const auto line = expected.find(file);
    if (line == expected.end()) {
      ADD_FAILURE() << "no expectation for\n" << file << ": " << error;
    } else {
      EXPECT_EQ(error, line->second) << file;
    }
  }
  for (const auto& [file, error] : expected)
    EXPECT_TRUE(actual.contains(file)) << file << " is not in the corpus";
}

}  // namespace
}  // namespace assay
