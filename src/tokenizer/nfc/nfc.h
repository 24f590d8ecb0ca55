// Unicode normalisation form C (UAX #15), for vocabularies whose tokenizer.json asks for it.
// Thread safety: pure. Cost: one scan for text that cannot change; else O(n log k) for runs of k combining
// marks.
#pragma once

#include <string>
#include <string_view>

namespace assay::tokenizer_internal {

// Invalid UTF-8 passes through and separates what is around it.
std::string normalise_nfc(std::string_view text);

}  // namespace assay::tokenizer_internal
