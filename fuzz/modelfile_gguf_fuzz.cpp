// Any bytes through the GGUF reader, the vocabulary and the writer: errors are fine, crashes and disagreement
// are not.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "modelfile/gguf_reader.h"
#include "modelfile/gguf_vocab.h"
#include "modelfile/gguf_writer.h"
#include "modelfile/metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  const auto bytes = std::as_bytes(std::span(data, size));
  auto contents = parse_gguf(bytes, "input");
  if (!contents) {
    CHECK(!contents.error().what.empty());
    return 0;
  }
  for (const Tensor& tensor : contents->tensors) {
    const auto expected = stored_bytes(tensor.type, static_cast<uint64_t>(tensor.n_values()));
    CHECK(expected && *expected == tensor.data.size());
    // Inside the input: the sanitizer watches both ends.
    volatile std::byte touched = tensor.data.front();
    touched = tensor.data.back();
    (void)touched;
  }
  const GgufDocument document{contents->metadata, contents->tensors};
  auto header = encode_gguf_header(document);
  CHECK(header.has_value());
  // The same metadata again; tensors only where their data would follow.
  if (contents->tensors.empty()) {
    const auto again = parse_gguf(std::as_bytes(std::span(*header)), "rewritten");
    CHECK(again.has_value());
    CHECK_OP(again->metadata.size(), ==, contents->metadata.size());
  }
  const modelfile_internal::Metadata metadata(std::move(contents->metadata), "input");
  const auto vocab = modelfile_internal::vocab_from_gguf(metadata);
  if (vocab) {
    for (const int32_t id : vocab->end_of_generation) CHECK(static_cast<size_t>(id) < vocab->tokens.size());
    for (const AddedToken& token : vocab->added) CHECK(static_cast<size_t>(token.id) < vocab->tokens.size());
  }
  return 0;
}
