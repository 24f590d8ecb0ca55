#include "kernels/kernel_table.h"

#include "kernels/targets/targets.h"

namespace assay {

const KernelTable* kernel_table(Isa isa) {
  static const CpuFeatures features = read_cpu().features;
  if (!supports(features, isa)) return nullptr;
  switch (isa) {
    case Isa::kPortable:
      return &kernels_portable::table();
#if defined(__x86_64__)
    case Isa::kAvx2:
      return &kernels_avx2::table();
    case Isa::kAvx512:
      return &kernels_avx512::table();
#else
    case Isa::kAvx2:
    case Isa::kAvx512:
      return nullptr;
#endif
    case Isa::kCount:
      break;
  }
  return nullptr;
}

}  // namespace assay
