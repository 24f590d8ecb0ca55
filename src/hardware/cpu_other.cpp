// Architectures without CPUID: what Linux tells.
#if !defined(__x86_64__)
#include <fstream>

#include "hardware/cpu.h"
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace assay {

CpuInfo read_cpu() {
  CpuInfo info;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) info.model = line.substr(colon + 2);
    if (line.starts_with("CPU implementer") && colon != std::string::npos)
      info.vendor = line.substr(colon + 2);
  }
#if defined(__aarch64__)
  // Bits of AT_HWCAP and AT_HWCAP2 (Linux, arch/arm64/include/uapi/asm/hwcap.h).
  const unsigned long hwcap = ::getauxval(AT_HWCAP), hwcap2 = ::getauxval(AT_HWCAP2);
  info.features.neon = ((hwcap >> 1) & 1) != 0;
  info.features.dotprod = ((hwcap >> 20) & 1) != 0;
  info.features.sve = ((hwcap >> 22) & 1) != 0;
  info.features.i8mm = ((hwcap2 >> 13) & 1) != 0;
#endif
  return info;
}

bool enable_amx() {
  return false;
}

}  // namespace assay
#endif
