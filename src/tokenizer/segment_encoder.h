// Turns text without added tokens into ids: one class for each kind of vocabulary.
// Thread safety: encode() may run in parallel. Failure: the factories only.
// The vocabulary must outlive the encoder.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tokenizer/vocabulary.h"

namespace assay::tokenizer_internal {

class SegmentEncoder {
 public:
  virtual ~SegmentEncoder() = default;
  // Appends the ids of `text`, which is not empty and may be any bytes.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
};

Result<std::unique_ptr<SegmentEncoder>> make_byte_level_encoder(const Vocabulary& vocabulary);
Result<std::unique_ptr<SegmentEncoder>> make_sentencepiece_encoder(const Vocabulary& vocabulary);
Result<std::unique_ptr<SegmentEncoder>> make_unigram_encoder(const Vocabulary& vocabulary);

}  // namespace assay::tokenizer_internal
