// CPUID and XGETBV; empty on other architectures.
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "hardware/cpu.h"

namespace assay {
namespace {

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero when the CPU does not have the leaf.
Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

bool bit(uint32_t value, int index) {
  return ((value >> index) & 1) != 0;
}

// XCR0: the register states that the operating system saves. Needs OSXSAVE.
uint64_t read_xcr0() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

constexpr uint64_t kAvxState = 0x6;      // xmm, ymm
constexpr uint64_t kAvx512State = 0xe6;  // and opmask, upper zmm, zmm16-31
constexpr uint64_t kAmxState = 0x60000;  // tile configuration, tile data

CpuFeatures read_features() {
  const Registers leaf1 = cpuid(1);
  const Registers leaf7 = cpuid(7, 0);
  const Registers leaf7_1 = leaf7.eax >= 1 ? cpuid(7, 1) : Registers{};
  const uint64_t xcr0 = bit(leaf1.ecx, 27) ? read_xcr0() : 0;
  const bool ymm = (xcr0 & kAvxState) == kAvxState;
  const bool zmm = (xcr0 & kAvx512State) == kAvx512State;
  const bool tiles = (xcr0 & kAmxState) == kAmxState;

  CpuFeatures f;
  f.sse42 = bit(leaf1.ecx, 20);
  f.avx = ymm && bit(leaf1.ecx, 28);
  f.fma = ymm && bit(leaf1.ecx, 12);
  f.f16c = ymm && bit(leaf1.ecx, 29);
  f.avx2 = ymm && bit(leaf7.ebx, 5);
  f.bmi2 = bit(leaf7.ebx, 8);
  f.avx_vnni = ymm && bit(leaf7_1.eax, 4);
  f.avx512f = zmm && bit(leaf7.ebx, 16);
  f.avx512dq = zmm && bit(leaf7.ebx, 17);
  f.avx512bw = zmm && bit(leaf7.ebx, 30);
  f.avx512vl = zmm && bit(leaf7.ebx, 31);
  f.avx512_vbmi = zmm && bit(leaf7.ecx, 1);
  f.avx512_vnni = zmm && bit(leaf7.ecx, 11);
  f.avx512_fp16 = zmm && bit(leaf7.edx, 23);
  f.avx512_bf16 = zmm && bit(leaf7_1.eax, 5);
  f.amx_bf16 = tiles && bit(leaf7.edx, 22);
  f.amx_tile = tiles && bit(leaf7.edx, 24);
  f.amx_int8 = tiles && bit(leaf7.edx, 25);
  return f;
}

std::string read_vendor() {
  const Registers r = cpuid(0);
  std::array<char, 12> text;
  std::memcpy(text.data(), &r.ebx, 4);
  std::memcpy(text.data() + 4, &r.edx, 4);
  std::memcpy(text.data() + 8, &r.ecx, 4);
  return {text.data(), text.size()};
}

// The 48 bytes of leaves 0x80000002 to 4, without padding; empty when the CPU does not have them.
std::string read_model() {
  if (__get_cpuid_max(0x80000000, nullptr) < 0x80000004) return {};
  std::array<char, 49> text{};
  for (uint32_t i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002 + i);
    std::memcpy(text.data() + 16 * i, &r, 16);
  }
  std::string model = text.data();
  const size_t first = model.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return model.substr(first, model.find_last_not_of(' ') - first + 1);
}

}  // namespace

CpuInfo read_cpu() {
  CpuInfo info;
  info.vendor = read_vendor();
  info.model = read_model();
  const uint32_t signature = cpuid(1).eax;
  const int family = static_cast<int>((signature >> 8) & 0xf);
  info.stepping = static_cast<int>(signature & 0xf);
  info.model_number = static_cast<int>((signature >> 4) & 0xf);
  if (family == 6 || family == 15) info.model_number += static_cast<int>((signature >> 16) & 0xf) << 4;
  info.family = family == 15 ? family + static_cast<int>((signature >> 20) & 0xff) : family;
  info.features = read_features();
  return info;
}

bool enable_amx() {
  static const bool granted = [] {
    const CpuFeatures features = read_features();
    if (!features.amx_tile || !features.amx_int8) return false;
    constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr long kTileData = 18;
    return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return granted;
}

}  // namespace assay
#endif
