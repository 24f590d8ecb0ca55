// The table for AVX2 with FMA and F16C.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/targets/region.h"
#include "kernels/targets/targets.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi2")
#endif

namespace assay::kernels_avx2 {
namespace {
constexpr Isa kIsa = Isa::kAvx2;
// clang-format off: each body uses the ones before it.
#include "kernels/bodies/vector_avx2.inl"
#include "kernels/bodies/exponential.inl"
#include "kernels/bodies/rows.inl"
#include "kernels/bodies/weights.inl"
#include "kernels/bodies/matmul_float.inl"
#include "kernels/bodies/matmul_integer.inl"
#include "kernels/bodies/matmul_sparse.inl"
#include "kernels/bodies/kv_cells_avx2.inl"
#include "kernels/bodies/store_kv.inl"
#include "kernels/bodies/attention_scores.inl"
#include "kernels/bodies/attention_values.inl"
#include "kernels/bodies/attention.inl"
#include "kernels/bodies/make_table.inl"
// clang-format on
}  // namespace
}  // namespace assay::kernels_avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace assay::kernels_avx2 {

const KernelTable& table() {
  static constexpr KernelTable kTable = make_table();
  return kTable;
}

}  // namespace assay::kernels_avx2
#endif
