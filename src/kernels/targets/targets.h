// The tables that this build has, one per instruction set; call one only on a CPU that supports it.
#pragma once

#include "kernels/kernel_table.h"

namespace assay::kernels_portable {
const KernelTable& table();
}

#if defined(__x86_64__)
namespace assay::kernels_avx2 {
const KernelTable& table();
}
namespace assay::kernels_avx512 {
const KernelTable& table();
}
#endif
