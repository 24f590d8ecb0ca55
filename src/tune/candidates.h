// The precisions that are measured when the contract does not list its own.
// Pure; thread safe.
#pragma once

#include <vector>

#include "numeric/precision.h"

namespace assay {

// Safest first. `holds_integers`: most weights of the checkpoint are integer blocks, so that "as shipped" is
// a candidate of its own and requantising to more bits than the file holds cannot help.
std::vector<Precision> default_candidates(bool holds_integers);

// The reference: the checkpoint computed in f32.
Precision reference_precision();

}  // namespace assay
