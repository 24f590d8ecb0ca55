#include "tokenizer/segment_encoder.h"

namespace assay::tokenizer_internal {

Result<std::unique_ptr<SegmentEncoder>> make_sentencepiece_encoder(const Vocabulary&) {
  return fail(ErrorCode::kUnsupported, "vocabulary", "this kind of vocabulary is not supported yet");
}

}  // namespace assay::tokenizer_internal
