// What every targets/*.cpp includes before its region: all standard and project headers that the bodies use,
// so that nothing shared between translation units is ever compiled with a target's instructions.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/units.h"
#include "kernels/backend.h"
#include "kernels/bodies/codes.h"
#include "kernels/kernel_table.h"
#include "kernels/kv_view.h"
#include "kernels/packed_matrix.h"
#include "numeric/bfloat16.h"
#include "numeric/float16.h"
#include "numeric/float8.h"

// Loops over register blocks: arrays of vectors stay in registers only when every index is a constant.
#if defined(__clang__)
#define KERNEL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define KERNEL_UNROLL _Pragma("GCC unroll 32")
#endif

// Vector types must not cross a call.
#define KERNEL_INLINE inline __attribute__((always_inline))
