#include "modelfile/weight_kind.h"

#include "numeric/integer_groups.h"

namespace assay {

bool holds_integer_weights(const Checkpoint& checkpoint) {
  uint64_t integer_bytes = 0, all_bytes = 0;
  for (const Tensor& tensor : checkpoint.tensors()) {
    if (tensor.shape.size() != 2) continue;
    all_bytes += tensor.data.size();
    if (has_integer_form(tensor.type)) integer_bytes += tensor.data.size();
  }
  return integer_bytes * 2 > all_bytes;
}

}  // namespace assay
