// What this CPU can execute: model, vendor, instruction sets. Only what the operating system also supports
// counts: a feature whose register state the kernel does not save (XCR0) is reported as absent. Source: Intel
// SDM volume 2 (CPUID, XGETBV), AMD APM volume 3. Thread safety: pure. Cost: microseconds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace assay {

struct CpuFeatures {
  // x86-64
  bool sse42 = false;
  bool avx = false, avx2 = false, fma = false, f16c = false, bmi2 = false;
  bool avx_vnni = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false;
  bool avx512_vnni = false, avx512_bf16 = false, avx512_fp16 = false, avx512_vbmi = false;
  bool amx_tile = false, amx_int8 = false, amx_bf16 = false;
  // aarch64
  bool neon = false, dotprod = false, i8mm = false, sve = false;
};

struct CpuInfo {
  std::string vendor;  // "GenuineIntel"; empty when it cannot be read
  std::string model;   // "Intel(R) Xeon(R) Processor"; empty when it cannot be read
  int family = -1;     // -1: cannot be read
  int model_number = -1;
  int stepping = -1;
  CpuFeatures features;
};

// Reads this CPU.
CpuInfo read_cpu();

// Names of the features that are present, in the order of the struct: "avx2", "avx512_vnni", ...
std::vector<std::string_view> feature_names(const CpuFeatures& features);

// Instruction sets that have a kernel table, weakest first.
//   avx2    AVX2, FMA, F16C
//   avx512  AVX-512 F, BW, DQ, VL, VNNI, BF16; a CPU with AVX-512 but without VNNI or BF16 takes avx2
enum class Isa : uint8_t { kPortable, kAvx2, kAvx512, kCount };

std::string_view name(Isa isa);  // "portable", "avx2", "avx512"
Result<Isa> parse_isa(std::string_view text);
bool supports(const CpuFeatures& features, Isa isa);
// The strongest instruction set that `features` allow.
Isa best_isa(const CpuFeatures& features);

// Asks Linux for the right to use AMX tile registers (arch_prctl, ARCH_REQ_XCOMP_PERM), once per process;
// true when the CPU has AMX int8 and the right is granted. Later calls return the first answer. Thread safe.
bool enable_amx();

}  // namespace assay
