// The measured candidates as a table for a terminal, 100 columns or less where the numbers allow.
#pragma once

#include <string>

#include "records/plan.h"

namespace assay {

// One row per candidate: precision, mean KL, top-1, perplexity change, prefill and decode tokens/s, resident
// memory, verdict. The chosen row is marked "->", the other rungs of the ladder with their number; each loser
// says which bounds it breaks, by how much.
std::string candidate_table(const Plan& plan);

}  // namespace assay
