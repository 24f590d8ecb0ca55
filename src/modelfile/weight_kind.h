// What kind of numbers a checkpoint's matrices are, seen as a whole.
#pragma once

#include "modelfile/checkpoint.h"

namespace assay {

// More than half of the bytes of its matrices are integer blocks (numeric/integer_groups.h). Pure.
bool holds_integer_weights(const Checkpoint& checkpoint);

}  // namespace assay
