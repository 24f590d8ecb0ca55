// Fills a VocabSpec from the files of a Hugging Face model. Internal to modelfile; pure; thread safe.
// Source: the serialised form of HF `tokenizers` (tokenizer.json) and transformers' tokenizer_config.json,
// special_tokens_map.json, generation_config.json and config.json.
// Failure: kCorrupt for broken files, kUnsupported for models, normalisers and pre-tokenizers outside
// byte-level BPE, SentencePiece BPE and unigram; the error names the part.
#pragma once

#include <boost/json/value.hpp>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tokenizer/vocab_spec.h"

namespace assay::modelfile_internal {

// The files that say something about the tokenizer; null where absent.
struct HfTokenizerFiles {
  boost::json::value tokenizer;          // tokenizer.json
  boost::json::value tokenizer_config;   // tokenizer_config.json
  boost::json::value special_tokens;     // special_tokens_map.json
  boost::json::value generation_config;  // generation_config.json
  boost::json::value config;             // config.json
  std::string chat_template;             // chat_template.jinja
};

// kNotFound when the folder has no tokenizer.json.
Result<HfTokenizerFiles> read_tokenizer_files(const std::filesystem::path& folder);

// `where` names the folder in errors.
Result<VocabSpec> vocab_from_tokenizer_files(const HfTokenizerFiles& files, std::string_view where);

}  // namespace assay::modelfile_internal
