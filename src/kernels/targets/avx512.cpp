// The table for AVX-512 with BW, DQ, VL, VNNI and BF16; AMX int8 for many rows where the CPU has it.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/targets/region.h"
#include "kernels/targets/targets.h"

#if defined(__clang__)
#pragma clang attribute push(                                                                                       \
    __attribute__((target(                                                                                          \
        "avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,evex512,amx-tile,amx-int8"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")
#endif

namespace assay::kernels_avx512 {
namespace {
constexpr Isa kIsa = Isa::kAvx512;
// clang-format off: each body uses the ones before it.
#include "kernels/bodies/vector_avx512.inl"
#include "kernels/bodies/exponential.inl"
#include "kernels/bodies/rows.inl"
#include "kernels/bodies/weights.inl"
#include "kernels/bodies/matmul_float.inl"
#include "kernels/bodies/matmul_bf16_pairs.inl"
#include "kernels/bodies/matmul_integer.inl"
#include "kernels/bodies/matmul_sparse.inl"
#include "kernels/bodies/matmul_amx.inl"
#include "kernels/bodies/kv_cells_avx512.inl"
#include "kernels/bodies/store_kv.inl"
#include "kernels/bodies/attention_scores.inl"
#include "kernels/bodies/attention_values.inl"
#include "kernels/bodies/attention.inl"
#include "kernels/bodies/make_table.inl"
// clang-format on
}  // namespace
}  // namespace assay::kernels_avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace assay::kernels_avx512 {
namespace {

constexpr KernelTable make_full_table() {
  KernelTable t = make_table();
  t.matmul[static_cast<int>(Format::kInt8)][activation_index(Format::kInt8)] =
      matmul_integer_amx<Format::kInt8>;
  t.matmul[static_cast<int>(Format::kInt4)][activation_index(Format::kInt8)] =
      matmul_integer_amx<Format::kInt4>;
  t.matmul_bf16_pairs = matmul_bf16_pairs;
  return t;
}

}  // namespace

const KernelTable& table() {
  static constexpr KernelTable kTable = make_full_table();
  return kTable;
}

}  // namespace assay::kernels_avx512
#endif
