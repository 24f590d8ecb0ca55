// The table for any CPU: plain C++.
#include "kernels/targets/region.h"
#include "kernels/targets/targets.h"

namespace assay::kernels_portable {
namespace {
constexpr Isa kIsa = Isa::kPortable;
// clang-format off: each body uses the ones before it.
#include "kernels/bodies/vector_portable.inl"
#include "kernels/bodies/exponential.inl"
#include "kernels/bodies/rows.inl"
#include "kernels/bodies/weights.inl"
#include "kernels/bodies/matmul_float.inl"
#include "kernels/bodies/matmul_integer.inl"
#include "kernels/bodies/matmul_sparse.inl"
#include "kernels/bodies/kv_cells_portable.inl"
#include "kernels/bodies/store_kv.inl"
#include "kernels/bodies/attention_scores.inl"
#include "kernels/bodies/attention_values.inl"
#include "kernels/bodies/attention.inl"
#include "kernels/bodies/make_table.inl"
// clang-format on
}  // namespace

const KernelTable& table() {
  static constexpr KernelTable kTable = make_table();
  return kTable;
}

}  // namespace assay::kernels_portable
