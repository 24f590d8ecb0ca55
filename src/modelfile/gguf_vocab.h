// Fills a VocabSpec from tokenizer.ggml.* keys. Internal to modelfile; pure; thread safe.
// Source of keys and defaults: the GGUF specification; what the files leave out is taken as llama.cpp takes
// it. Failure: kNotFound when the file has no vocabulary, kCorrupt for wrong types or counts, kUnsupported
// for tokenizer models other than byte-level BPE ("gpt2"), SentencePiece BPE ("llama") and unigram ("t5").
#pragma once

#include "base/error.h"
#include "modelfile/metadata.h"
#include "tokenizer/vocab_spec.h"

namespace assay::modelfile_internal {

Result<VocabSpec> vocab_from_gguf(const Metadata& metadata);

}  // namespace assay::modelfile_internal
