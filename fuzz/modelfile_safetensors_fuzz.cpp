// Any bytes through the safetensors reader; bytes that start like a JSON object also through config.json and
// tokenizer.json. Errors are fine, crashes are not.
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/check.h"
#include "modelfile/hf_config.h"
#include "modelfile/hf_tensor_names.h"
#include "modelfile/hf_tokenizer.h"
#include "modelfile/json_document.h"
#include "modelfile/safetensors_reader.h"

namespace {

using namespace assay;
using namespace assay::modelfile_internal;

void read_safetensors(std::span<const std::byte> bytes) {
  const auto contents = parse_safetensors(bytes, "input");
  if (!contents) return;
  for (const Tensor& tensor : contents->tensors) {
    const auto expected = stored_bytes(tensor.type, static_cast<uint64_t>(tensor.n_values()));
    CHECK(expected && *expected == tensor.data.size());
    volatile std::byte touched = tensor.data.front();
    touched = tensor.data.back();
    (void)touched;
    (void)gguf_tensor_name(tensor.name, "llama");
  }
}

void read_documents(std::string_view text) {
  auto document = parse_json(text, "input");
  if (!document) return;
  if (const auto root = as_object(*document, "input")) (void)translate_config(*root, "input");
  HfTokenizerFiles files;
  files.tokenizer = *document;
  files.tokenizer_config = *document;
  files.generation_config = std::move(*document);
  const auto vocab = vocab_from_tokenizer_files(files, "input");
  if (!vocab) return;
  for (const int32_t id : vocab->end_of_generation) CHECK(static_cast<size_t>(id) < vocab->tokens.size());
  for (const AddedToken& token : vocab->added) CHECK(static_cast<size_t>(token.id) < vocab->tokens.size());
  CHECK_OP(vocab->kinds.size(), ==, vocab->tokens.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0 && data[0] == '{') {
    read_documents({reinterpret_cast<const char*>(data), size});
  } else {
    read_safetensors(std::as_bytes(std::span(data, size)));
  }
  return 0;
}
